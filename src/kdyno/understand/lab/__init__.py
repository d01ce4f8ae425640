"""The kernel's library routines on this processor: candidates, their times, and proofs that they are equal."""
