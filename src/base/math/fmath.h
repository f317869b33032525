/* fmath.h - exp, log and their kin in double, as our own code with one order of operations.
 *
 * libm picks an implementation by CPU, so its last bits differ between machines.
 * These use + - * / and sqrt only: the same bits wherever IEEE 754 holds. With
 * denormals flushed (tn_flush_denormals) results below 2.2e-308 are 0.
 *
 * Errors, measured in ulp against 80 bits: exp 1, ln and log1p 3, sigmoid and softplus 3, tanh 2.
 * NaN goes in and comes out. Pure functions, any thread.
 */
#pragma once

/* ln x of docs/numerics.md section 5: -inf at 0, NaN below. Decides the bits of initial values,
 * so its operations may never change. */
double tn_ln(double x);

double tn_exp(double x); /* inf above 709.78, 0 below -745.13 */

/* ln(1 + x), x >= 0: keeps the digits of a small x. */
double tn_log1p(double x);

/* softplus(x) = ln(1 + e^x) = max(x, 0) + log1p(e^-|x|): never overflows, never 0 too early. */
double tn_log1p_exp(double x);

double tn_sigmoid(double x); /* x >= 0: 1 / (1 + e^-x), else e^x / (1 + e^x) */
double tn_tanh(double x);
