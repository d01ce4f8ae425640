/* every file gets include/generated.h */
