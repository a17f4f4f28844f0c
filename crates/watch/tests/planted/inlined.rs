//! A function that the compiler inlines into its caller: three quarters of the time in one caller, the rest in another.

use std::hint::black_box;

/// Long enough that the loops around it take no time: of a short one, a CPU takes the interrupt of a sample after it.
#[inline(always)]
fn mix(mut number: u64) -> u64 {
    for _ in 0..16 {
        number = (number ^ number >> 29).wrapping_mul(6_364_136_223_846_793_005);
        number = number.wrapping_add(1_442_695_040_888_963_407);
    }
    number
}

// Each adds something else: the compiler would make one function of two that are the same.
#[inline(never)]
fn price_three(turns: u64) -> u64 {
    (0..turns).fold(turns, |number, _| mix(number) ^ 3)
}

#[inline(never)]
fn price_one(turns: u64) -> u64 {
    (0..turns).fold(turns, |number, _| mix(number) ^ 1)
}

fn main() {
    loop {
        black_box(price_three(black_box(30_000)));
        black_box(price_one(black_box(10_000)));
    }
}
