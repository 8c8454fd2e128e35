#pragma once

#ifdef __cplusplus
extern "C" {
#endif
int count_letters(const char *text);
#ifdef __cplusplus
}
#endif
