/* SPDX-License-Identifier: MIT */
#include "telemetry.h"

static uint32_t slot(const struct telemetry *t, uint32_t i)
{
	return (t->first + i) % TELEMETRY_MAX;
}

void telemetry_tell(struct telemetry *t, const struct record *record)
{
	int64_t due = record->at + t->delay;

	if (t->delay < 0 || t->n == TELEMETRY_MAX)
		return;
	if (t->n && due < t->due[slot(t, t->n - 1)])
		due = t->due[slot(t, t->n - 1)];
	t->due[slot(t, t->n)] = due;
	t->ring[slot(t, t->n)] = *record;
	t->n++;
}

int64_t telemetry_due(const struct telemetry *t)
{
	return t->n ? t->due[t->first] : NEVER;
}

struct record telemetry_take(struct telemetry *t)
{
	struct record record = t->ring[t->first];

	t->first = slot(t, 1);
	t->n--;
	return record;
}
