/* runner.h - declares the tests of a room; included before the first line of each.
 *
 * The build gives `main` of test/<room>/test_<file>.c the name tn_test_<file> and lists the files
 * in TN_TESTS, one a line: TN_TEST(<file>), or TN_TEST_WITH_WORDS(<file>) where main takes argc and
 * argv.
 */
#pragma once

#define TN_TEST(file) int tn_test_##file(void);
#define TN_TEST_WITH_WORDS(file) int tn_test_##file(int argc, char **argv);
#include TN_TESTS
#undef TN_TEST
#undef TN_TEST_WITH_WORDS
