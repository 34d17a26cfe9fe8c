/* A Lua module that records which lines of lua/riskscreen run. At exit it writes them as "path:line" to a file in the
 * directory RISKSCREEN_COVERAGE. It supports one Lua state per process, and not LuaJIT, whose compiled code calls no
 * hooks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>

#define FILES_MAX      256
#define LINES_MAX      1024
#define PATH_MAX_BYTES 128
#define CHUNKS_MAX     4096 /* a power of two */

__attribute__((visibility("default"))) int luaopen_line_coverage(lua_State *L);

static struct file {
    char path[PATH_MAX_BYTES];
    unsigned char run[LINES_MAX];
} files[FILES_MAX];
static size_t file_count;

/* A cache from a chunk name's address to its file. It compares the name too, since Lua may reuse the address. */
static struct chunk {
    const char *source;
    char name[PATH_MAX_BYTES];
    struct file *file; /* NULL if the chunk is not part of the library */
} chunks[CHUNKS_MAX];

static struct file *find_file(const char *source) {
    const char *path = *source == '@' ? strstr(source, "lua/riskscreen/") : NULL;
    if (path == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < file_count; i++) {
        if (strcmp(files[i].path, path) == 0) {
            return &files[i];
        }
    }
    if (file_count == FILES_MAX || strlen(path) >= PATH_MAX_BYTES) {
        return NULL;
    }
    strcpy(files[file_count].path, path);
    return &files[file_count++];
}

static struct file *file_of(const char *source) {
    struct chunk *chunk = &chunks[((size_t)source >> 4) * 2654435761u % CHUNKS_MAX];
    if (chunk->source != source || strncmp(chunk->name, source, PATH_MAX_BYTES - 1) != 0) {
        chunk->source = source;
        chunk->file = find_file(source);
        strncpy(chunk->name, source, PATH_MAX_BYTES - 1);
    }
    return chunk->file;
}

static void note_line(lua_State *L, lua_Debug *record) {
    (void)lua_getinfo(L, "S", record);
    struct file *file = file_of(record->source);
    if (file != NULL && record->currentline > 0 && record->currentline < LINES_MAX) {
        file->run[record->currentline] = 1;
    }
}

static __attribute__((destructor)) void write_lines(void) {
    char path[4096];
    const char *directory = getenv("RISKSCREEN_COVERAGE");
    (void)snprintf(path, sizeof path, "%s/%ld", directory == NULL ? "." : directory, (long)getpid());
    FILE *output = file_count > 0 ? fopen(path, "w") : NULL;
    if (output == NULL) {
        return;
    }
    for (size_t i = 0; i < file_count; i++) {
        for (int line = 1; line < LINES_MAX; line++) {
            if (files[i].run[line]) {
                (void)fprintf(output, "%s:%d\n", files[i].path, line);
            }
        }
    }
    (void)fclose(output);
}

int luaopen_line_coverage(lua_State *L) {
    lua_sethook(L, note_line, LUA_MASKLINE, 0);
    return 0;
}
