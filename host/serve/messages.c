// SPDX-License-Identifier: Apache-2.0
#include "serve/messages.h"

#include <string.h>

#include "common/json.h"
#include "common/str.h"

// The text of a message: a string, or a list of parts that are text.
static int add_content(struct mr_buf *text, const json_t *content, struct mr_error *err)
{
    size_t n = json_is_string(content) ? 1 : json_array_size(content);
    if (n == 0)
        return mr_fail(err, MR_ERR_USAGE, "'messages' has one whose 'content' is %s; give a string",
                       mr_json_kind(content));
    for (size_t i = 0; i < n; i++) {
        const json_t *part = json_is_string(content) ? NULL : json_array_get(content, i);
        const json_t *type = json_object_get(part, "type");
        const json_t *s = part ? json_object_get(part, "text") : content;
        if (!json_is_string(s) ||
            (part && (!json_is_string(type) || strcmp(json_string_value(type), "text") != 0)))
            return mr_fail(err, MR_ERR_UNSUPPORTED,
                           "'messages' has a part that is no text; this model reads text only");
        int rc = mr_buf_append(text, json_string_value(s), json_string_length(s), err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

enum role { SYSTEM, USER, ASSISTANT, ROLES };

static int role_of(const json_t *message, enum role *role, struct mr_error *err)
{
    static const struct {
        const char *name;
        enum role role;
    } roles[] = {
        {"system", SYSTEM}, {"developer", SYSTEM}, {"user", USER}, {"assistant", ASSISTANT}};
    const char *name = json_string_value(json_object_get(message, "role"));
    for (size_t i = 0; name && i < sizeof roles / sizeof *roles; i++)
        if (strcmp(roles[i].name, name) == 0) {
            *role = roles[i].role;
            return 0;
        }
    return mr_fail(err, MR_ERR_USAGE,
                   "'messages' has one whose 'role' is %s; 'system', 'user' and 'assistant' are "
                   "known",
                   name ? mr_show(name).text : "no string");
}

// A line of its own, whether or not the message ends one.
static int end_line(struct mr_buf *text, struct mr_error *err)
{
    bool open = text->size > 0 && text->data[text->size - 1] != '\n';
    return open ? mr_buf_append(text, "\n", 1, err) : 0;
}

// The contents of a message and of its neighbours of the same role, a line end between them; *next
// is behind the last.
static int add_neighbours(struct mr_buf *text, const json_t *messages, enum role role, size_t *next,
                          struct mr_error *err)
{
    enum role other = role;
    int rc = add_content(text, json_object_get(json_array_get(messages, *next), "content"), err);
    for (++*next; rc == 0 && *next < json_array_size(messages); ++*next) {
        const json_t *message = json_array_get(messages, *next);
        rc = role_of(message, &other, err);
        if (rc < 0 || other != role)
            break;
        rc = end_line(text, err);
        if (rc == 0)
            rc = add_content(text, json_object_get(message, "content"), err);
    }
    return rc;
}

// System messages stand in front, then user and assistant take turns: with any other order nobody
// could say where a reply ends.
static int add_turn(const struct mr_turns *turns, struct mr_buf *text, const json_t *messages,
                    size_t *next, enum role *last, struct mr_error *err)
{
    struct mr_buf content = {0};
    enum role role = SYSTEM;
    bool first = *next == 0;
    int rc = role_of(json_array_get(messages, *next), &role, err);
    if (rc == 0)
        rc = add_neighbours(&content, messages, role, next, err);
    bool fits = role == SYSTEM ? first : role == USER || (!first && *last == USER);
    if (rc == 0 && !fits)
        rc = mr_fail(err, MR_ERR_USAGE,
                     "'messages' must begin with 'system', if there is one, and then take turns, "
                     "'user' first");
    const char *data = content.data ? content.data : "";
    if (rc == 0 && role == SYSTEM) {
        rc = mr_buf_append(text, data, content.size, err);
        if (rc == 0)
            rc = end_line(text, err);
    } else if (rc == 0 && role == USER) {
        rc = mr_turns_add(turns, first || *last == SYSTEM, data, content.size, text, err);
    } else if (rc == 0) {
        bool spaced = content.size > 0 && (*data == ' ' || *data == '\n');
        rc = spaced ? 0 : mr_buf_append(text, " ", 1, err);
        if (rc == 0)
            rc = mr_buf_append(text, data, content.size, err);
    }
    *last = role;
    mr_buf_free(&content);
    return rc;
}

int mr_messages_text(const json_t *messages, const struct mr_turns *turns, struct mr_buf *text,
                     struct mr_error *err)
{
    enum role last = SYSTEM;
    int rc = json_array_size(messages) > 0
                 ? 0
                 : mr_fail(err, MR_ERR_USAGE, "'messages' is empty; give one of the user");
    for (size_t i = 0; rc == 0 && i < json_array_size(messages);)
        rc = add_turn(turns, text, messages, &i, &last, err);
    if (rc == 0 && last != USER)
        rc = mr_fail(err, MR_ERR_USAGE, "'messages' must end with one of the user");
    return rc;
}
