#pragma once

extern "C" int count_words(const char* text);
