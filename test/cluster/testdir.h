/* testdir.h - a folder for each test of a file, by FIXTURE(testdir_set_up, testdir_tear_down). */
#pragma once

extern char testdir[256]; /* its path */

int testdir_set_up(void **state);
int testdir_tear_down(void **state); /* no failure that a test has asked for is left, either */
