// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Times and proves the candidates of one family.
 *
 *   PROGRAM time SEED                    cells from standard input; of each cell and candidate: cycles of a call
 *   PROGRAM prove CANDIDATE LEAST MOST OFFSETS RANDOM MOST_RANDOM SLACK SECONDS MOST_FAULTS SEED
 *
 * A cell is a line `warm|cold|used N`, followed by N lines `SIZE TO FROM`: sizes, and offsets of both addresses in their
 * pages. Status 2: wrong usage; 3: the system refused something; 4: a candidate is wrong, as the last line says.
 */
#include "harness.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **word_of)
{
	word known = 0, number[16] = {0};
	while (candidates[known])
		known++;
	for (int index = 2; index < count && index < 16; index++)
		number[index] = strtoul(word_of[index], NULL, 10);
	if (count == 3 && !strcmp(word_of[1], "time")) {
		seed_random(number[2]);
		time_all(known);
	} else if (count == 12 && !strcmp(word_of[1], "prove") && number[2] < known && number[5] <= ALIGNMENTS) {
		const struct bounds bounds = {
			.least = number[3], .most = number[4], .offsets = number[5], .cases = number[6],
			.most_random = number[7], .slack = number[8], .seconds = number[9], .most_faults = number[10],
		};
		seed_random(number[11]);
		prove(number[2], &bounds);
	} else {
		return WRONG_USAGE;
	}
	return fflush(stdout) ? REFUSED : 0;
}
