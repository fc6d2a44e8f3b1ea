/* SPDX-License-Identifier: MIT */
/*
 * A configuration file of arbitrary bytes. Asserted: lines come in order and no
 * more of them than there are, a name has no blank, a value begins and ends with
 * none, neither is empty; and the settings take each or say why not.
 */
#include <stdint.h>
#include <string.h>

#include "mux/options/config_file.h"
#include "mux/options/options.h"
#include "check.h"
#include "input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char blanks[] = " \t\r\v\f\n";

static void check_line(const struct config_line *line)
{
	size_t n;

	check(*line->name && !line->name[strcspn(line->name, blanks)]);
	if (!line->value)
		return;
	n = strlen(line->value);
	check(n && !strchr(blanks, line->value[0]) &&
	      !strchr(blanks, line->value[n - 1]));
}

static void set(struct settings *settings, const struct config_line *line)
{
	char why[512] = "";
	int err = settings_set(settings, line->name, line->value, why,
			       sizeof(why));

	check(!err == !*why);
	settings_check(settings, why, sizeof(why));
}

static void take(const char *path, unsigned int lines)
{
	struct settings settings;
	struct config_file file;
	struct config_line line;
	char why[512];
	unsigned int last = 0;

	if (config_file_open(&file, path, why, sizeof(why)))
		return;
	settings_init(&settings);
	while (config_file_next(&file, &line)) {
		check(line.number > last && line.number <= lines);
		last = line.number;
		check_line(&line);
		set(&settings, &line);
	}
	config_file_close(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input_file file;

	input_file_open(&file, data, size);
	take(file.path, file.lines);
	input_file_close(&file);
	return 0;
}
