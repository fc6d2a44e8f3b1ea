/* SPDX-License-Identifier: MIT */
#include "admission.h"

bool admission_knows_path(const struct wire_hello *hello)
{
	return !(hello->features & WIRE_FEATURE_PATH) ||
	       hello->path < WIRE_EXT_PATHS_MAX;
}

enum admission_verdict admission_enter(struct admission *admission,
				       const struct wire_hello *hello)
{
	uint64_t bit = (uint64_t)1 << hello->pipe;

	if (admission->pipes && admission->pipes != hello->pipes)
		return ADMISSION_COUNT;
	if (admission->known & bit &&
	    hello->incarnation <= admission->last[hello->pipe])
		return ADMISSION_OLD;
	if (!admission_knows_path(hello))
		return ADMISSION_PATH;
	admission->pipes = hello->pipes;
	admission->known |= bit;
	admission->last[hello->pipe] = hello->incarnation;
	return ADMISSION_OK;
}

uint32_t admission_features(uint32_t offered, uint32_t own)
{
	uint32_t common = offered & own;

	if ((common & WIRE_FEATURES_VERSION_1) != WIRE_FEATURES_VERSION_1)
		return 0;
	return common;
}
