# SPDX-License-Identifier: Apache-2.0
# The rules of device.def (value, check, window, after) -> C (out=legal), SystemVerilog functions
# (out=sv, behind gen_device.awk, inside mr_pkg), the tables of docs/inside/commands.md (out=doc), or lists of
# fields and rules for tests (out=rules; out=training: those of training only).
#
# What stands behind `training` holds where the value TRAIN is set. A device without it has the constant 0
# there, so that nothing is left of it.
#
# In C each part of "a && b && c" is a rule of its own: an error says which is broken.
#
# An expression is one of unsigned integers: || && ! == != < <= > >= + * / % ?: ( ), numbers, the
# fields of the command (words of the descriptor), values and constants; a field hides a value of
# its name. There is no subtraction, so that nothing wraps below zero. Every node's width is
# counted from the widths of its operands, and more than 64 bits are an error: C computes in
# uint64_t and the RTL in as many bits as the node has, and neither loses one.
#
# A command's check that multiplies fields or values is judged by the RTL in two steps, for a register
# between them: products_of, then legal_products. Values of the order are those of the first step only.
# What a product meets is taken along as the first step knows it, for "a + product <= b" as b - a, so
# that the second step only compares.
# A window of training may say ahead(EXPRESSION), of fields and values of the run: the RTL knows it a cycle before
# (ahead_of).
# What the other checks of all commands say is a bit each (checks_of), so that the second step asks whether all hold.

function bad(text) {
    if (!failed) printf "%s:%d: %s\n", FILENAME, FNR, text >"/dev/stderr"
    failed = 1
}
function bits_of(n,   b) { for (b = 1; n >= 2; b++) n = int(n / 2); return b }
function log2_of(n,   k) { for (k = 0; n > 1 && n % 2 == 0; k++) n /= 2; return n == 1 ? k : -1 }
function hex_of(s,   v, i) {
    for (v = 0; s != ""; s = substr(s, 2)) {
        i = index("0123456789abcdef", tolower(substr(s, 1, 1))) - 1
        v = 16 * v + i
    }
    return v
}
function number_of(s) { return s ~ /^0x/ ? hex_of(substr(s, 3)) : s + 0 }

# ---- tokens: tok_kind "n" number, "i" name, "o" operator, "" end
function next_token() {
    sub(/^[ \t]+/, "", rest)
    if (rest == "") { tok = tok_kind = ""; return }
    if (match(rest, /^(0x[0-9A-Fa-f]+|[0-9]+)/)) tok_kind = "n"
    else if (match(rest, /^(ahead|[A-Z][A-Z0-9_]*)/)) tok_kind = "i"
    else if (match(rest, /^(\|\||&&|==|!=|<=|>=|[<>!+*\/%()?:])/)) tok_kind = "o"
    else { bad("'" substr(rest, 1, 1) "' is no part of an expression"); tok = tok_kind = ""; rest = ""; return }
    tok = substr(rest, 1, RLENGTH)
    rest = substr(rest, RLENGTH + 1)
}
# A node: its C and SystemVerilog text, its width in bits, its value if it is a constant.
function node(c, sv, w, k) {
    n_nodes++
    if (w > 64) bad("more than 64 bits in '" text "'")
    nc[n_nodes] = c; nsv[n_nodes] = sv; nw[n_nodes] = w; nk[n_nodes] = k
    return n_nodes
}
function constant(v) { return node(sprintf("%.0fu", v), bits_of(v) "'d" sprintf("%.0f", v), bits_of(v), v) }
# Extended by concatenation: Verilator 5.006 hands a cast's width down into what is cast.
function wide(n, w) {
    if (nk[n] != "") return w "'d" sprintf("%.0f", nk[n])
    return padded(nsv[n], nw[n], w)
}
function padded(sv, from, to) { return from == to ? sv : "{" to - from "'d0, " sv "}" }
# Bits [lsb, lsb + w) of a node.
function part(n, lsb, w) {
    if (nbase[n] != "") return nbase[n] " + " nlsb[n] + lsb " +: " w "]"
    return w "'(" (lsb ? nsv[n] " >> " lsb : wide(n, most(nw[n], w)) " & " most(nw[n], w) "'d" 2 ^ w - 1) ")"
}
function truth(n) { return nw[n] == 1 ? nsv[n] : "(" nsv[n] " != " nw[n] "'d0)" }
function most(a, b) { return a > b ? a : b }

function primary(   n, key) {
    if (tok_kind == "n") { n = constant(number_of(tok)); next_token(); return n }
    if (tok == "ahead") { next_token(); return ahead(primary()) }
    if (tok_kind == "i") {
        key = subject SUBSEP tok
        if (!(key in f_word) && subject in op_code) key = "CMD" SUBSEP tok # the same in all commands
        if (key in f_word)
            n = node(sprintf("(uint64_t)(c[%d] >> %d & 0x%Xu)", f_word[key], f_lsb[key], 2 ^ f_width[key] - 1),
                     sprintf("c[%d +: %d]", 32 * f_word[key] + f_lsb[key], f_width[key]), f_width[key], "")
        if (n) { nbase[n] = "c[" 32 * f_word[key]; nlsb[n] = f_lsb[key] }
        else if (tok in value_width) {
            n = node("v->" tolower(tok), sprintf("v[V_%s_LSB +: %d]", tok, value_width[tok]), value_width[tok], "")
            nbase[n] = "v[V_" tok "_LSB"; nlsb[n] = 0
            if (value_kind[tok] == "order") has_order = 1
        } else if (tok in consts) n = constant(consts[tok])
        else { bad("'" tok "' is neither a field of " subject " nor a value nor a constant"); n = constant(0) }
        next_token()
        return n
    }
    if (tok == "(") {
        next_token(); n = ternary()
        if (tok != ")") bad("a ')' is missing in '" text "'")
        next_token()
        return n
    }
    if (tok == "!") { next_token(); n = primary(); return node("!(" nc[n] ")", "!" truth(n), 1, "") }
    bad("an operand is missing in '" text "'")
    next_token()
    return constant(0)
}
# Node n is known a cycle before the rest of its window.
function ahead(n) {
    if (!in_window || !training || has_order)
        bad("'" text "': ahead() is of fields and of values of the run, in a window of training")
    ahead_sv[n_ahead + 0] = nsv[n]
    ahead_part[n_ahead++] = ahead_w + 0 " +: " nw[n]
    ahead_w += nw[n]
    return node(nc[n], "a[" ahead_part[n_ahead - 1] "]", nw[n], "")
}
function late(n) { return index(nsv[n], "p[") > 0 }
# Node n, which a product is or is compared with, goes into p, after what subject has there already, for the second step.
function stage(n,   key) {
    if (late(n)) bad("'" text "': a product of a product")
    key = subject SUBSEP nsv[n]
    if (!(key in prod_lsb)) {
        prod_lsb[key] = products_w[subject] + 0
        products_w[subject] += nw[n]
        products_most = most(products_most, products_w[subject])
        prod_op[n_prods + 0] = subject; prod_sv[n_prods + 0] = nsv[n]; prod_training[n_prods + 0] = training
        prod_part[n_prods++] = prod_lsb[key] " +: " nw[n]
    }
    nbase[n] = "p[" prod_lsb[key]; nlsb[n] = 0
    nsv[n] = "p[" prod_lsb[key] " +: " nw[n] "]"
    has_product = 1
}
# Of two operands of which one has a product the other one is taken along.
function meet(a, b) {
    if (staged && late(a) && !late(b) && nk[b] == "") stage(b)
    if (staged && late(b) && !late(a) && nk[a] == "") stage(a)
}
function product(   a, b, op, k, w, two) {
    a = primary()
    while (tok == "*" || tok == "/" || tok == "%") {
        op = tok; next_token(); b = primary()
        k = nk[b] == "" ? -1 : log2_of(nk[b])
        if (op == "*") {
            w = nw[a] + nw[b]
            two = staged && nk[a] == "" && nk[b] == ""
            a = node("(" nc[a] " * " nc[b] ")", "(" wide(a, w) " * " wide(b, w) ")", w, "")
            if (two) stage(a)
        } else if (k >= 0) {
            w = op == "/" ? nw[a] - k : k
            if (w < 1 || w > nw[a]) { bad("'" text "': nothing is left of an operand"); w = 1 }
            a = node("(" nc[a] " " op " " nc[b] ")", op == "/" ? part(a, k, w) : part(a, 0, w), w, "")
        } else if (op == "%" && nk[b] == "") {
            meet(a, b)
            w = most(nw[a], nw[b])
            a = node("(" nc[a] " % " nc[b] ")", nw[b] "'(" wide(a, w) " % " wide(b, w) ")", nw[b], "")
        } else bad("'" op "' wants a power of two, or with % a value, behind it")
    }
    return a
}
function sum(   a, b, w, early, last) {
    a = product()
    while (tok == "+") {
        next_token(); b = product()
        w = most(nw[a], nw[b]) + 1
        early = late(a) ? b : a
        last = late(a) ? a : b
        if (tok != "<=") meet(a, b)
        a = node("(" nc[a] " + " nc[b] ")", "(" wide(a, w) " + " wide(b, w) ")", w, "")
        is_sum[a] = 1
        if (staged && late(last) && !late(early)) { n_early[a] = early; n_last[a] = last }
    }
    return a
}
# a <= b as the sign of b - a, for what is late: of <= synthesis makes < or ==, and behind the subtraction stands a tree
# for what is equal.
function at_most(a, b, w) { return "(({1'd0, " b "} - {1'd0, " a "}) < {1'd1, " w "'d0})" }
# early + last <= limit, of which only last has a product: p gets {early > limit, limit - early}.
function fits(early, last, limit,   w, over, room) {
    w = most(nw[early], nw[limit])
    over = node("", "(" wide(early, w) " > " wide(limit, w) ")", 1, "")
    room = node("", "(" wide(limit, w) " - " wide(early, w) ")", w, "")
    stage(over); stage(room)
    w = most(w, nw[last])
    return "(!" nsv[over] " && " at_most(wide(last, w), wide(room, w), w) ")"
}
function comparison(   a, b, op, w, sv) {
    a = sum()
    if (tok ~ /^(==|!=|<=|>=|<|>)$/) {
        op = tok; next_token(); b = sum()
        w = most(nw[a], nw[b])
        if (a in n_last) {
            if (late(b)) bad("'" text "': products on both sides of a sum")
            sv = fits(n_early[a], n_last[a], b)
        } else {
            meet(a, b)
            if (op == "<=" && (is_sum[a] || is_sum[b] || late(a) || late(b))) sv = at_most(wide(a, w), wide(b, w), w)
            else sv = "(" wide(a, w) " " op " " wide(b, w) ")"
        }
        a = node("(" nc[a] " " op " " nc[b] ")", sv, 1, "")
    }
    return a
}
function conjunction(   a, b) {
    a = comparison()
    while (tok == "&&") { next_token(); b = comparison(); meet(a, b); a = node("(" nc[a] " && " nc[b] ")", "(" truth(a) " && " truth(b) ")", 1, "") }
    return a
}
function disjunction(   a, b) {
    a = conjunction()
    while (tok == "||") { next_token(); b = conjunction(); meet(a, b); a = node("(" nc[a] " || " nc[b] ")", "(" truth(a) " || " truth(b) ")", 1, "") }
    return a
}
function ternary(   a, b, c, w) {
    a = disjunction()
    if (tok != "?") return a
    next_token(); b = ternary()
    if (tok != ":") bad("a ':' is missing in '" text "'")
    next_token(); c = ternary()
    meet(a, b); meet(a, c); meet(b, c); meet(a, b)
    w = most(nw[b], nw[c])
    return node("(" nc[a] " ? " nc[b] " : " nc[c] ")", "(" truth(a) " ? " wide(b, w) " : " wide(c, w) ")", w, "")
}
function parse(what, expression,   n) {
    subject = what; text = rest = expression
    next_token()
    n = ternary()
    if (tok != "") bad("'" tok "' does not fit behind what is before it in '" text "'")
    return n
}
# The parts of a && b && c as nodes in piece[] and text in piece_text[]; one part if there is || or ?.
function split_rule(what, expression,   i, depth, two, from, n) {
    n = 0; from = 1; depth = 0
    for (i = 1; i <= length(expression); i++) {
        two = substr(expression, i, 2)
        if (substr(two, 1, 1) == "(") depth++
        if (substr(two, 1, 1) == ")") depth--
        if (depth == 0 && (two == "||" || substr(two, 1, 1) == "?")) { n = 0; from = 1; break }
        if (depth == 0 && two == "&&") { piece_text[n++] = substr(expression, from, i - from - 1); from = i + 3 }
    }
    piece_text[n++] = substr(expression, from)
    for (i = 0; i < n; i++) piece[i] = parse(what, piece_text[i])
    return n
}
# Parts of check i that have no product are of the first step; SystemVerilog has each as a bit or a condition.
# Those of training take along that this is a run of it.
function late_check(i, what,   j, first, of) {
    if (training) { of = node("", "v[V_TRAIN_LSB]", 1, ""); stage(of) }
    for (j = 0; j < ck_pieces[i]; j++)
        if (late(piece[j])) late_sv[what, n_late[what]++] = training ? "(!" nsv[of] " || " truth(piece[j]) ")" : truth(piece[j])
        else first = first (first == "" ? "" : " && ") truth(piece[j])
    ck_sv[i] = first
}
# The rest of a line from field i on; what follows " # " goes to remark.
function tail(i,   s, at) {
    s = $0
    for (; i > 1; i--) sub(/^[ \t]*[^ \t]+[ \t]*/, "", s)
    remark = ""
    if (at = index(s, " # ")) { remark = substr(s, at + 3); s = substr(s, 1, at) }
    sub(/[ \t]+$/, "", s)
    return s
}
function known(what) {
    if (!(what in op_code) && what !~ /^(RUN|CHANNEL|TRAINING|STASH)$/) bad("no op, RUN, CHANNEL, TRAINING or STASH is called '" what "'")
}

# How much of products and windows a device without training has: what stands before that line.
function without_training(   op) {
    apart = 1
    plain_products = products_most; plain_windows = windows_most
    plain_off_w = off_w; plain_beats_w = beats_w; plain_limit_w = limit_w
    for (op in n_late) plain_late[op] = n_late[op]
}

FNR == 1 { training = 0 }
$1 == "training" { training = 1 }
training && !apart { without_training() }
/^#/ || NF == 0 || failed { next }
$1 == "const" { consts[$2] = number_of($3) }
$1 == "op" { op_training[$2] = training; op_code[$2] = $3; op_queue[$2] = $4; op_list[n_op_list++] = $2 }
$1 == "field" {
    f_word[$2, $3] = $4; f_lsb[$2, $3] = $5; f_width[$2, $3] = $6
    field_training[n_fields + 0] = training
    field_op[n_fields + 0] = $2; field_name[n_fields++] = $3
    if ($4 < 0 || $4 > 15 || $5 + $6 > 32 || $6 < 1) bad("a field lies in one of 16 words of 32 bits")
}
$1 == "desc" || $1 == "channel_desc" {
    what = $1 == "desc" ? "RUN" : "CHANNEL"
    f_word[what, $2] = $3; f_lsb[what, $2] = 0; f_width[what, $2] = 32
    word_name[n_words + 0] = $2; word_at[n_words++] = $3 + (what == "RUN" ? 0 : 16)
}
$1 == "training_desc" || $1 == "stash_desc" {
    what = $1 == "training_desc" ? "TRAINING" : "STASH"
    f_word[what, $2] = $3; f_lsb[what, $2] = 0; f_width[what, $2] = 32
}
$1 == "value" {
    if ($4 !~ /^(geometry|run|order)$/ || $3 < 1 || $3 > 64) bad("value NAME BITS KIND TEXT, at most 64 bits; geometry, run or order")
    value_width[$2] = $3; value_kind[$2] = $4; value_lsb[$2] = values_w
    values[n_values++] = $2
    values_w += $3
}
$1 == "check" {
    known($2)
    expr = tail(3)
    has_product = has_order = 0
    n = parse($2, expr)
    if (nw[n] != 1) bad("a check is true or false: '" expr "' has " nw[n] " bits")
    staged = $2 in op_code
    k = split_rule($2, expr)
    staged = 0
    if (has_product && has_order && !training) bad("'" expr "': a product and a value of the order in one check")
    i = n_checks++
    ck_training[i] = training
    ck_op[i] = $2; ck_text[i] = expr; ck_sv[i] = nsv[n]; ck_remark[i] = remark
    ck_pieces[i] = k
    for (j = 0; j < ck_pieces[i]; j++) { ck_c[i, j] = nc[piece[j]]; ck_piece[i, j] = piece_text[j] }
    if (has_product) late_check(i, $2)
}
$1 == "window" {
    known($2)
    expr = tail(4)
    at = index(expr, ",")
    if (!at || !(($3 "_BEATS") in value_width)) bad("window OP WINDOW OFFSET, BEATS; WINDOW_BEATS is a value")
    i = n_windows++
    wd_op[i] = $2; wd_of[i] = $3; wd_text[i] = expr; wd_training[i] = training
    gsub(/ahead\(/, "(", wd_text[i])
    n = parse($2, substr(expr, 1, at - 1)); wd_off_c[i] = nc[n]; wd_off_n[i] = n
    in_window = 1; has_order = 0
    m = parse($2, substr(expr, at + 1)); wd_beats_c[i] = nc[m]; wd_beats_n[i] = m
    in_window = 0
    if (!($3 in window_no)) { window_no[$3] = n_window_names; window_name[n_window_names++] = $3 }
    if (++op_windows[$2] > windows_most) windows_most = op_windows[$2]
    off_w = most(off_w, nw[n]); beats_w = most(beats_w, nw[m]); limit_w = most(limit_w, value_width[$3 "_BEATS"])
    if (most(off_w, beats_w) >= 64) bad("more than 64 bits in '" expr "'")
}
$1 == "after" {
    known($2)
    if (value_kind[$3] != "order") bad("after OP VALUE EXPRESSION; '" $3 "' is no value of the order")
    n = parse($2, tail(4))
    i = n_afters++
    af_op[i] = $2; af_value[i] = $3; af_c[i] = nc[n]; af_text[i] = text; af_training[i] = training
    af_sv[i] = nw[n] <= value_width[$3] ? wide(n, value_width[$3]) : value_width[$3] "'(" nsv[n] ")"
}

# ---- C
function legal_list_c(   i) {
    printf "\n// X(name) for each value that rules know beside the fields, and for those of the geometry; windows."
    printf "\n#define MR_VALUE_LIST(X) \\\n"
    for (i = 0; i < n_values; i++) printf "    X(%s) \\\n", tolower(values[i])
    printf "\n#define MR_GEOMETRY_LIST(X) \\\n"
    for (i = 0; i < n_values; i++) if (value_kind[values[i]] == "geometry") printf "    X(%s) \\\n", tolower(values[i])
    printf "\nenum {"
    for (i = 0; i < n_window_names; i++) printf "%s MR_WINDOW_%s", (i ? "," : ""), window_name[i]
    print " };"
}
function legal_c(   i, j, o) {
    print "// Generated from rtl/spec/device.def; do not edit. Included by host/cmodel/legal.c."
    for (o = 0; o < n_op_list + 4; o++) {
        op = o < n_op_list ? op_list[o] : o == n_op_list ? "RUN" : o == n_op_list + 1 ? "CHANNEL" : o == n_op_list + 2 ? "TRAINING" : "STASH"
        printf "\nstatic const char *check_%s(const uint32_t *c, const struct mr_values *v)\n{\n    (void)c;\n    (void)v;\n", op
        for (i = 0; i < n_checks; i++)
            for (j = 0; ck_op[i] == op && j < ck_pieces[i]; j++)
                printf "    if (%s!%s)\n        return \"%s: %s\";\n", (ck_training[i] ? "v->train && " : ""), ck_c[i, j], op, ck_piece[i, j]
        print "    return NULL;\n}"
    }
    print "\nstatic int windows_of(const uint32_t *c, const struct mr_values *v, struct mr_window *w)\n{\n    int n = 0;\n    switch (c[0] & 0xFFu) {"
    for (o = 0; o < n_op_list; o++) {
        for (i = j = 0; i < n_windows; i++)
            if (wd_op[i] == op_list[o]) {
                if (!j++) printf "    case MR_OP_%s:\n", op_list[o]
                printf "        %sw[n++] = (struct mr_window){MR_WINDOW_%s, %s, %s};\n", (wd_training[i] ? "if (v->train)\n            " : ""), wd_of[i], wd_off_c[i], wd_beats_c[i]
            }
        if (j) print "        break;"
    }
    print "    default:\n        break;\n    }\n    (void)v;\n    return n;\n}"
    print "\nstatic uint64_t window_beats(int window, const struct mr_values *v)\n{"
    for (i = 0; i < n_window_names; i++)
        printf "    if (window == MR_WINDOW_%s)\n        return v->%s_beats;\n", window_name[i], tolower(window_name[i])
    print "    return 0;\n}"
    print "\nstatic const char *check_command(const uint32_t *c, const struct mr_values *v)\n{\n    switch (c[0] & 0xFFu) {"
    for (o = 0; o < n_op_list; o++)
        printf "    case MR_OP_%s:\n        return %scheck_%s(c, v);\n", op_list[o], (op_training[op_list[o]] ? "!v->train ? \"no such opcode\" : " : ""), op_list[o]
    print "    default:\n        return \"no such opcode\";\n    }\n}"
    print "\nstatic void after_command(const uint32_t *c, struct mr_values *v)\n{\n    switch (c[0] & 0xFFu) {"
    for (o = 0; o < n_op_list; o++) {
        for (i = j = 0; i < n_afters; i++)
            if (af_op[i] == op_list[o]) {
                if (!j++) printf "    case MR_OP_%s:\n", op_list[o]
                printf "        v->%s = %s;\n", tolower(af_value[i]), af_c[i]
            }
        if (j) print "        break;"
    }
    print "    default:\n        break;\n    }\n}"
}

# ---- SystemVerilog
# What holds in training only: a rule, and a value that is zero otherwise.
function train_rule(of, sv) { return of ? "(!v[V_TRAIN_LSB] || " sv ")" : sv }
function train_only(of, sv, zero) { return of ? "v[V_TRAIN_LSB] ? " sv " : " zero : sv }
# Each check has a bit of its own: were several ORed into one, what is late in one would stand behind what is deep in
# another. Those that training adds are behind the others.
function checks_sv(name, of, from,   i, n, held) {
    for (i = n = 0; i < n_checks; i++)
        if (ck_op[i] in op_at && ck_sv[i] != "" && ck_training[i] == of) {
            held = op_training[ck_op[i]] ? ck_sv[i] : train_rule(of, ck_sv[i])
            ck_bit[n] = sprintf("    %schecks_of[%d] = !op[%d] || %s;  // %s", name, from + n, op_at[ck_op[i]], held, ck_op[i])
            n++
        }
    printf "  localparam int %sCHECKS_W = %d;\n", toupper(name), from + n
    printf "  function automatic logic [%sCHECKS_W-1:0] %schecks_of(input logic [OPS-1:0] op, input logic [511:0] c, input logic [VALUES_W-1:0] v);\n", toupper(name), name
    print of ? "    training_checks_of[CHECKS_W-1:0] = checks_of(op, c, v);" : "    checks_of[0] = |op;"
    for (i = 0; i < n; i++) print ck_bit[i]
    print "  endfunction\n"
    return from + n
}
# Products and windows are there twice, since those of training are more and wider: without them (of 0)
# under their own names, and all (of 1) under names that begin with training_.
function products_sv(name, of, width,   i, o, n) {
    print "  // The products that a command's other checks look at, and what they are compared with; then\n" \
          "  // these checks."
    printf "  localparam int %sPRODUCTS_W = %d;\n", toupper(name), most(width, 1)
    printf "  function automatic logic [%sPRODUCTS_W-1:0] %sproducts_of(input logic [511:0] c, input logic [VALUES_W-1:0] v);\n", toupper(name), name
    printf "    %sproducts_of = '0;\n    unique case (c[7:0])\n", name
    for (o = 0; o < n_op_list; o++) {
        for (i = n = 0; i < n_prods; i++)
            if (prod_op[i] == op_list[o] && prod_training[i] <= of) {
                if (!n++) printf "      8'h%s: begin\n", substr(op_code[op_list[o]], 3)
                printf "        %sproducts_of[%s] = %s;\n", name, prod_part[i], train_only(prod_training[i], prod_sv[i], "'0")
            }
        if (n) print "      end"
    }
    print "      default: ;\n    endcase\n  endfunction\n"
    printf "  function automatic logic %slegal_products(input logic [7:0] op, input logic [%sPRODUCTS_W-1:0] p);\n", name, toupper(name)
    print "    unique case (op)"
    for (o = 0; o < n_op_list; o++) {
        n = of ? n_late[op_list[o]] : plain_late[op_list[o]]
        if (!n) continue
        printf "      8'h%s: %slegal_products =", substr(op_code[op_list[o]], 3), name
        for (i = 0; i < n; i++) printf "%s\n        %s", (i ? " &&" : ""), late_sv[op_list[o], i]
        print ";"
    }
    printf "      default: %slegal_products = 1'b1;\n    endcase\n  endfunction\n\n", name
}
# Each window of a command: {room behind the offset, offset > limit, beats}. An empty one fits everywhere.
function windows_sv(name, of, most_windows, beats_w, w,   i, o, j, op, each, limit, first) {
    each = w + 1 + beats_w
    print "  // The windows that a command uses, as the room that is left from its offset on; then whether its\n" \
          "  // beats fit. In two steps, for a register between them."
    printf "  localparam int %sWINDOWS_W = %d;\n", toupper(name), most(most_windows * each, 1)
    if (of) {
        print "  // What windows of training have a cycle before: a part for each, so that nothing is selected behind a product."
        print "  localparam int AHEAD_W = " most(ahead_w, 1) ";"
        print "  function automatic logic [AHEAD_W-1:0] ahead_of(input logic [511:0] c, input logic [VALUES_W-1:0] v);"
        print "    ahead_of = '0;"
        for (i = 0; i < n_ahead; i++) printf "    ahead_of[%s] = %s;\n", ahead_part[i], ahead_sv[i]
        print "  endfunction\n"
    }
    printf "  function automatic logic [%sWINDOWS_W-1:0] %swindows_of(input logic [511:0] c, input logic [VALUES_W-1:0] v%s);\n", toupper(name), name, (of ? ", input logic [AHEAD_W-1:0] a" : "")
    printf "    %swindows_of = '0;\n    unique case (c[7:0])\n", name
    for (o = 0; o < n_op_list; o++) {
        for (i = j = 0; i < n_windows; i++) {
            if (wd_op[i] != op_list[o] || wd_training[i] > of) continue
            if (!j) printf "      8'h%s: begin\n", substr(op_code[op_list[o]], 3)
            op = wd_of[i] "_BEATS"
            limit = padded(sprintf("v[V_%s_LSB +: %d]", op, value_width[op]), value_width[op], w)
            first = wide(wd_off_n[i], w)
            printf "        %swindows_of[%d +: %d] = %s;\n", name, each * j++, each, train_only(wd_training[i],
                   sprintf("{(%s - %s), (%s > %s), %s}", limit, first, first, limit, wide(wd_beats_n[i], beats_w)), "'0")
        }
        if (j) print "      end"
    }
    print "      default: ;\n    endcase\n  endfunction\n"
    j = most(beats_w, w)
    printf "  function automatic logic %swindows_legal(input logic [%sWINDOWS_W-1:0] w);\n    %swindows_legal = 1'b1", name, toupper(name), name
    for (i = 0; i < most_windows; i++)
        printf " &&\n        !w[%d] && %s", each * i + beats_w, at_most(padded("w[" each * i " +: " beats_w "]", beats_w, j), padded("w[" each * i + beats_w + 1 " +: " w "]", w, j), j)
    print ";\n  endfunction\n"
}
function legal_sv(   i, o, op, j, w) {
    print "\n  // ---- legality: the rules of device.def. v is what the rules know beside the fields.\n" \
          "  // Of a command and of v each rule looks at some bits.\n  /* verilator lint_off UNUSED */"
    for (i = 0; i < n_values; i++)
        printf "  localparam int V_%s_LSB = %d, V_%s_W = %d;\n", values[i], value_lsb[values[i]], values[i], value_width[values[i]]
    printf "  localparam int VALUES_W = %d;\n\n", values_w

    print "  // A command's queue, one-hot; no bit for an opcode that does not exist. train: a run of training."
    print "  function automatic logic [4:0] queue_of(input logic [7:0] op, input logic train);\n    unique case (op)"
    for (o = 0; o < n_op_list; o++)
        printf "      8'h%s: queue_of = %s << QUEUE_%s;\n", substr(op_code[op_list[o]], 3), (op_training[op_list[o]] ? "{4'd0, train}" : "5'd1"), op_queue[op_list[o]]
    print "      default: queue_of = 5'd0;\n    endcase\n  endfunction\n"

    print "  // Which command it is, a bit each; none for an opcode that does not exist. train: as above."
    printf "  localparam int OPS = %d;\n", n_op_list
    print "  function automatic logic [OPS-1:0] op_of(input logic [7:0] op, input logic train);"
    for (o = 0; o < n_op_list; o++) {
        op_at[op_list[o]] = o
        printf "    op_of[%d] = op == 8'h%s%s;\n", o, substr(op_code[op_list[o]], 3), (op_training[op_list[o]] ? " && train" : "")
    }
    print "  endfunction\n"
    print "  // What a command's checks say, a bit each (ones for those of other commands), and the first bit\n" \
          "  // that it is one at all; op as of op_of. Whether all hold can be asked a cycle later."
    checks_sv("training_", 1, checks_sv("", 0, 1))

    if (!apart) without_training()
    products_sv("", 0, plain_products)
    products_sv("training_", 1, products_most)
    windows_sv("", 0, plain_windows, plain_beats_w, most(plain_off_w, plain_limit_w))
    windows_sv("training_", 1, windows_most, beats_w, most(off_w, limit_w))

    for (o = 0; o < 4; o++) {
        op = o == 0 ? "RUN" : o == 1 ? "CHANNEL" : o == 2 ? "TRAINING" : "STASH"
        printf "  function automatic logic legal_%s(input logic [%d:0] c, input logic [VALUES_W-1:0] v);\n    legal_%s = 1'b1", tolower(op), o % 2 ? 255 : 511, tolower(op)
        for (i = 0; i < n_checks; i++) if (ck_op[i] == op) printf " &&\n        %s", train_rule(ck_training[i], ck_sv[i])
        print ";\n  endfunction"
    }
    for (o = 0; o < n_values; o++) {
        if (value_kind[values[o]] != "order") continue
        for (i = 0; i < n_afters; i++) if (af_value[i] == values[o]) break
        if (i == n_afters) continue
        printf "  function automatic logic [%d:0] after_%s(input logic [511:0] c, input logic [VALUES_W-1:0] v);\n", value_width[values[o]] - 1, tolower(values[o])
        print "    unique case (c[7:0])"
        for (i = 0; i < n_afters; i++)
            if (af_value[i] == values[o])
                printf "      8'h%s: after_%s = %s;\n", substr(op_code[af_op[i]], 3), tolower(values[o]), train_only(af_training[i], af_sv[i], "v[V_" values[o] "_LSB +: " value_width[values[o]] "]")
        printf "      default: after_%s = v[V_%s_LSB +: %d];\n    endcase\n  endfunction\n", tolower(values[o]), values[o], value_width[values[o]]
    }
    print "  /* verilator lint_on UNUSED */"
}

# ---- docs/inside/commands.md
function legal_table(of,   i, o, op) {
    print "| of | rule | why |\n|---|---|---|"
    for (o = -4; o < n_op_list; o++) {
        op = o == -4 ? "RUN" : o == -3 ? "CHANNEL" : o == -2 ? "TRAINING" : o == -1 ? "STASH" : op_list[o]
        for (i = 0; i < n_checks; i++)
            if (ck_op[i] == op && ck_training[i] == of) { t = ck_text[i]; gsub(/\|/, "\\|", t); printf "| %s | `%s` | %s |\n", op, t, ck_remark[i] }
        for (i = 0; i < n_windows; i++)
            if (wd_op[i] == op && wd_training[i] == of) { t = wd_text[i]; gsub(/\|/, "\\|", t); printf "| %s | beats `%s` lie in the %s window | else code 3 |\n", op, t, tolower(wd_of[i]) }
    }
}
function legal_doc() {
    legal_table(0)
    print "\nIn a run of training (bit 1 of FLAGS, a device with TRAIN) these hold as well:\n"
    legal_table(1)
}

# ---- lists for tests
# FIELD(op, name): bits of commands. WORD(name, word): of the descriptor; those of channel 0 from word
# 16 on. RULE(text): as the C functions return it. WINDOW(op, offset field).
function legal_rules(of,   i, j) {
    print "// Generated from rtl/spec/device.def; do not edit. Included by tests."
    for (i = 0; i < n_fields; i++) if (field_training[i] == of) printf "FIELD(%s, %s)\n", field_op[i], field_name[i]
    for (i = 0; i < n_words && !of; i++) printf "WORD(%s, %d)\n", word_name[i], word_at[i]
    for (i = 0; i < n_checks; i++)
        for (j = 0; j < ck_pieces[i] && ck_training[i] == of; j++) printf "RULE(\"%s: %s\")\n", ck_op[i], ck_piece[i, j]
    for (i = 0; i < n_windows; i++) if (wd_training[i] == of) printf "WINDOW(%s, %s)\n", wd_op[i], substr(wd_text[i], 1, index(wd_text[i], ",") - 1)
}
END {
    if (failed) exit 1
    if (out == "legal") legal_c()
    else if (out == "rules") legal_rules(0)
    else if (out == "training") legal_rules(1)
    else if (out == "doc") legal_doc()
}
