/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a legend calls a stack: the function that asked for the memory and its caller, "_XQueryFont
 * <- XQueryFont", with names as frame_name.h shortens them. Frames are given innermost first, one
 * after the other. A function that called itself, or was inlined into itself, is named once. Of
 * code without symbols, an address says little: there the caller is the next function that has a
 * name, "libfont.so+0x234d9 <- ... <- FcFontMatch". Where stacks of one legend have both functions
 * in common, as all that allocates through a list's insert(), each has the one further out, too, at
 * which it parts from the others.
 */
#ifndef LEAKTOOLS_PLOT_STACK_LABEL_H
#define LEAKTOOLS_PLOT_STACK_LABEL_H

#include <stdbool.h>
#include <stddef.h>

/* Functions that are kept to tell stacks apart, of which a label shows three at most. */
#define STACK_LABEL_FRAMES     8
#define STACK_LABEL_NAME_CHARS 48
/* Of three names together; beyond it, the one in the middle is left out. */
#define STACK_LABEL_NAMES_BYTES 48

/* Zero it before use. */
struct stack_label {
	char *names[STACK_LABEL_FRAMES];
	int nr;
	char *wrapper; /* the outermost one, of stacks that have nothing else */
	char *unnamed; /* the caller, where it has no name and nobody further out has */
};

/* Takes the next frame in. Returns 0 or -ENOMEM, not reported. */
int stack_label_add(struct stack_label *label, const char *symbol);

/* True if further frames change nothing. */
bool stack_label_is_full(const struct stack_label *label);

/*
 * The label among the @nr of a @legend, of which it may be one; "" if there was no frame. The
 * caller frees it. NULL: out of memory. *@ret_has_twin, unless it is NULL: another has the same
 * functions.
 */
char *stack_label_text(const struct stack_label *label, const struct stack_label *const *legend,
		       size_t nr, bool *ret_has_twin);

/* Frees what @label holds, and makes it an empty one. */
void stack_label_clear(struct stack_label *label);

#endif
