package dev.parallax.disturber;

/** A class of some size, to be defined many times; never called. */
final class Filler {
    private Filler() {}

    long turn00(long a, int b) {
        return a * 31L + b % 7 + "turn 00 of a class that only takes room".length();
    }

    long turn01(long a, int b) {
        return a * 32L + b % 8 + "turn 01 of a class that only takes room".length();
    }

    long turn02(long a, int b) {
        return a * 33L + b % 9 + "turn 02 of a class that only takes room".length();
    }

    long turn03(long a, int b) {
        return a * 34L + b % 10 + "turn 03 of a class that only takes room".length();
    }

    long turn04(long a, int b) {
        return a * 35L + b % 11 + "turn 04 of a class that only takes room".length();
    }

    long turn05(long a, int b) {
        return a * 36L + b % 12 + "turn 05 of a class that only takes room".length();
    }

    long turn06(long a, int b) {
        return a * 37L + b % 13 + "turn 06 of a class that only takes room".length();
    }

    long turn07(long a, int b) {
        return a * 38L + b % 14 + "turn 07 of a class that only takes room".length();
    }

    long turn08(long a, int b) {
        return a * 39L + b % 15 + "turn 08 of a class that only takes room".length();
    }

    long turn09(long a, int b) {
        return a * 40L + b % 16 + "turn 09 of a class that only takes room".length();
    }

    long turn10(long a, int b) {
        return a * 41L + b % 17 + "turn 10 of a class that only takes room".length();
    }

    long turn11(long a, int b) {
        return a * 42L + b % 18 + "turn 11 of a class that only takes room".length();
    }

    long turn12(long a, int b) {
        return a * 43L + b % 19 + "turn 12 of a class that only takes room".length();
    }

    long turn13(long a, int b) {
        return a * 44L + b % 20 + "turn 13 of a class that only takes room".length();
    }

    long turn14(long a, int b) {
        return a * 45L + b % 21 + "turn 14 of a class that only takes room".length();
    }

    long turn15(long a, int b) {
        return a * 46L + b % 22 + "turn 15 of a class that only takes room".length();
    }

    long turn16(long a, int b) {
        return a * 47L + b % 23 + "turn 16 of a class that only takes room".length();
    }

    long turn17(long a, int b) {
        return a * 48L + b % 24 + "turn 17 of a class that only takes room".length();
    }

    long turn18(long a, int b) {
        return a * 49L + b % 25 + "turn 18 of a class that only takes room".length();
    }

    long turn19(long a, int b) {
        return a * 50L + b % 26 + "turn 19 of a class that only takes room".length();
    }

    long turn20(long a, int b) {
        return a * 51L + b % 27 + "turn 20 of a class that only takes room".length();
    }

    long turn21(long a, int b) {
        return a * 52L + b % 28 + "turn 21 of a class that only takes room".length();
    }

    long turn22(long a, int b) {
        return a * 53L + b % 29 + "turn 22 of a class that only takes room".length();
    }

    long turn23(long a, int b) {
        return a * 54L + b % 30 + "turn 23 of a class that only takes room".length();
    }
}
