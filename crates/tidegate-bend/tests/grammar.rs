//! One program for every production of the grammar, each of which must pass.

use tidegate_bend::{check_text, Checked, Options};

/// Checks declarations under `import Base`, as a library.
fn pass(declarations: &str) -> Checked {
    let text = format!("import Base\n\n{declarations}");
    match check_text("test.bend", &text, Options { library: true }) {
        Ok(checked) => checked,
        Err(failure) => panic!("{}\n---\n{text}", failure.render()),
    }
}

/// The same declarations must fail, with this in the report.
fn fail(declarations: &str, report: &str) {
    let text = format!("import Base\n\n{declarations}");
    match check_text("test.bend", &text, Options { library: true }) {
        Ok(_) => panic!("passed:\n{text}"),
        Err(failure) => {
            let found = failure.render();
            assert!(found.contains(report), "{found}\n--- lacks: {report}");
        }
    }
}

/// A function whose body is that term.
fn term(parameters: &str, result: &str, term: &str) {
    pass(&format!("def f({parameters}) -> {result}:\n  {term}\n"));
}

#[test]
fn comments_and_blank_lines() {
    pass("# a comment\ndef f() -> U32: # another\n\n  # and one in between\n  1 # at the end");
}

#[test]
fn tabs_and_carriage_returns_are_white_space() {
    pass(
        "def f(m: Maybe<U32>) -> U32:\r\n\tmatch m:\r\n\t\tcase None{}:\r\n\t\t\t0\r\n\t\tcase Some{x}:\r\n\t\t\tx\r\n",
    );
}

#[test]
fn types_with_and_without_parameters() {
    pass("type Color is Data:\n  Red{}\n  Green{}\n\ntype Box<a, -A: Kind(a)> is Kind(a):\n  Box{value: A}\n");
    pass("type Pair2<a, b, -A: Kind(a), -B: Kind(b)> is Kind(a <&> b):\n  P{x: A, y: B}\n");
    pass("type One<-A: Type> is Type:\n  One{value: A, -note: Nat, +count: U32}\n");
    pass("type Nothing is Data:\n\ndef absurd(n: Nothing) -> U32:\n  match n:\n");
}

#[test]
fn a_field_may_mention_an_earlier_one() {
    pass(
        "def Choice(b: Bool) -> Type:\n  match b:\n    case True{}: U32\n    case False{}: String\n\n\
          type Dep is Type:\n  Dep{-tag: Bool, value: Choice(tag)}\n\ndef f() -> Dep:\n  Dep{True{}, 1}\n",
    );
}

#[test]
fn laws_and_their_definitions() {
    let checked = pass(
        "law add_zero:\n  for x: Nat\n  {Nat.add(x, 0n) == x : Nat}\n\n\
         def add_zero(x):\n  match x:\n    case 0n:\n      {==}\n    case 1n+p:\n      \
         %add_zero(p) : {1n+Nat.add(p, 0n) == 1n+_ : Nat}\n      {==}\n",
    );
    assert_eq!(checked.report.proofs, ["add_zero"]);
    assert!(checked.report.lines()[1].contains("read and skipped: add_zero"));
}

#[test]
fn a_law_that_no_definition_fills_is_told() {
    let checked = pass("law claim:\n  for -A: Type\n  for +n: Nat\n  exs m: Nat\n  {n == m : Nat}\n");
    assert_eq!(checked.report.open, ["claim"]);
}

#[test]
fn clauses_take_marks_conditions_and_templates() {
    pass("law step:\n  for ~f: Nat -> Nat\n  for n: Nat where {n == f(n) : Nat}\n  Nat\n");
    pass("law size:\n  for x: U32\n  U32\n\ndef size(x):\n  x\n\ndef g() -> U32:\n  size(2)\n");
}

#[test]
fn inequalities_are_refutations() {
    let checked = pass("law apart:\n  {0n != 1n : Nat}\n\ndef apart(e):\n  Empty.absurd(Empty, e)\n");
    assert_eq!(checked.report.proofs, ["apart"]);
}

#[test]
fn a_rewrite_names_its_equation() {
    let checked =
        pass("def flip(-A: Type, -a: A, -b: A, e: {a == b : A}) -> {b == a : A}:\n  %p @ e : {_ == a : A};\n  {==}\n");
    assert_eq!(checked.report.proofs, ["flip"]);
}

#[test]
fn witnesses_are_pairs() {
    pass("def half() -> &n: Nat -> {Nat.add(n, n) == 4n : Nat}:\n  (2n, {==})\n");
}

#[test]
fn unsafe_and_partial_definitions_need_not_descend() {
    let checked = pass("@unsafe\ndef spin(n: U32) -> U32:\n  spin(n)\n\ndef loop?(n: U32) -> U32:\n  loop(n)\n");
    assert_eq!(checked.report.trusted, ["spin", "loop"]);
}

#[test]
fn foreign_bodies_are_read_and_told() {
    let checked = pass("def beep() -> IO(Unit): import \"beep.c\" import \"beep.js\"\n");
    assert_eq!(checked.report.foreign, ["beep"]);
}

#[test]
fn binders_take_marks() {
    pass("def f(a, -A: Kind(a), x: A, +n: U32, ~g: U32 -> U32) -> U32:\n  (n + g(n) : U32)\n");
}

#[test]
fn a_match_takes_one_or_more_scrutinees() {
    pass("def f(a: Bool, n: Nat) -> Nat:\n  match a n:\n    case True{} 0n: 0n\n    case True{}, 1n+p: p\n    case _ m: m\n");
}

#[test]
fn nested_matches_take_cases_by_column() {
    pass(
        "def f(a: Bool, b: Bool) -> U32:\n  match a:\n    case True{}:\n      match b:\n        case True{}: 1\n        \
         case False{}: 2\n    case False{}: match b:\n      case True{}: 3\n      case False{}: 4\n",
    );
    // The last case stands left of the inner match's: it is the outer one's.
    pass("def f(a: Bool, b: Bool) -> U32:\n  match a:\n    case True{}: match b:\n           case _: 1\n    case False{}: 4\n");
    fail(
        "def f(a: Bool, b: Bool) -> U32:\n  match a:\n    case True{}: match b:\n      case True{}: 1\n      case False{}: 2\n",
        "cases for False{}",
    );
}

/// The cases of a match need not stand right of the word `match`, nor of the lambda it is the body of.
#[test]
fn a_lambda_may_have_its_cases_anywhere_below() {
    for spaces in [0, 5, 40] {
        let indent = " ".repeat(spaces);
        let cases = format!("\n{indent}case Some{{x}}: x\n{indent}case None{{}}: 0\n");
        pass(&format!("def f() -> U32:\n  g : (Maybe<&2, U32> -> U32) = m => match m:{cases}  g(Some{{4}})\n"));
        pass(&format!("def f() -> Maybe<&2, U32> -> U32:\n  m =>\n        match m:{cases}"));
        pass(&format!("def f() -> U32 -> Maybe<&2, U32> -> U32:\n  n => m => k = n; match m:{cases}"));
    }
    pass(
        "def ap(f: Maybe<&2, U32> -> U32, m: Maybe<&2, U32>) -> U32:\n  f(m)\n\n\
         def f() -> U32:\n  ap(m => match m:\n    case Some{x}: x\n    case None{}: 0, Some{4})\n\n\
         def g() -> U32:\n  ap(m => match m:\n    case Some{x}: x\n    case None{}: 0\n  , Some{4})\n",
    );
    pass(
        "def f() -> IO(Unit):\n  IO.bind(Maybe<&2, U32>, Unit, IO.pure(Maybe<&2, U32>, Some{4}), m => match m:\n    \
         case Some{x}: IO.print(U32.show(x))\n    case None{}: IO.pure(Unit, Unit{}))\n",
    );
}

#[test]
fn parentheses_may_have_their_cases_anywhere_below() {
    pass("def f(m: Bool) -> Nat:\n  Nat.add(1n, (match m:\n    case True{}: 1n\n    case False{}: 2n))\n");
    pass("def f(m: Bool) -> Nat:\n  Nat.add((match m:\n    case True{}: 1n\n    case False{}: 2n), 1n)\n");
    pass("def f(m: Bool, n: Bool) -> Nat & Nat & U32:\n  (match m:\n case True{}: 1n\n case False{}: 2n, match n:\n   case True{}: 3n\n   case False{}: 4n, 5)\n");
    pass("def f(m: Bool) -> List<Nat>:\n  [1n, (match m:\n    case True{}: 1n\n    case False{}: 2n), 3n]\n");
    pass(
        "def f(m: Bool) -> Nat:\n  n : Nat = (match m:\n    case True{}: 1n\n    case False{}: 2n)\n  Nat.add(n, 1n)\n",
    );
}

#[test]
fn a_rewrite_may_have_its_cases_anywhere_below() {
    pass(
        "def f(m: Bool, -a: Nat, -b: Nat, e: {a == b : Nat}) -> Nat:\n                 %e : Nat; match m:\n    \
         case True{}: 1n\n    case False{}: 2n\n",
    );
}

/// Whatever stands between a match and the `case` around it, that one's column is the limit.
#[test]
fn a_case_left_of_a_lambda_is_still_the_outer_match_s() {
    pass(
        "def f(n: Nat) -> Maybe<&2, U32> -> U32:\n  match n:\n    case 0n: m => match m:\n      case Some{x}: x\n      \
         case None{}: 0\n    case 1n+_: m => 1\n",
    );
    // One column right of the case around it is enough; at its column, a case is the outer one's.
    pass(
        "def f(n: Nat) -> Maybe<&2, U32> -> U32:\n  match n:\n    case 0n: m => match m:\n     case Some{x}: x\n     \
         case None{}: 0\n    case 1n+_: m => 1\n",
    );
    pass("def f(n: Nat) -> Empty -> U32:\n  match n:\n    case 0n: m => match m:\n    case 1n+_: m => match m:\n");
    fail(
        "def f(n: Nat) -> Bool -> U32:\n  match n:\n    case 0n: m => match m:\n    case True{}: 1\n    case False{}: 0\n",
        "True{}",
    );
    fail(
        "def f(n: Nat) -> Nat:\n  match n:\n    case 0n: 0n\n    case 1n+p: Nat.add(1n, (match p:\n    case 0n: 1n\n    case _: 2n))\n",
        "observed : 'case'",
    );
    // After three levels the limits of the outer two are back.
    pass(
        "def f(a: Bool, b: Bool) -> Bool -> U32:\n  match a:\n    case True{}: match b:\n      case True{}: c => match c:\n       \
         case True{}: 1\n       case False{}: 2\n      case False{}: c => 3\n    case False{}: c => match c:\n     \
         case True{}: 4\n     case False{}: 5\n",
    );
}

#[test]
fn a_statement_of_do_ends_after_the_cases_of_its_lambda() {
    for spaces in [0, 4, 20] {
        let indent = " ".repeat(spaces);
        pass(&format!(
            "def f() -> IO(Unit):\n  do IO<Unit>:\n    g : Maybe<&2, U32> -> U32 = m => match m:\n{indent}case Some{{x}}: x\n\
             {indent}case None{{}}: 0\n    IO.print(U32.show(g(Some{{4}})))\n    IO.bind(Bool, Unit, IO.pure(Bool, True{{}}), \
             b => match b:\n{indent}case True{{}}: IO.print(\"yes\")\n{indent}case False{{}}: IO.print(\"no\"))\n    \
             IO.print(\"end\")\n"
        ));
    }
    // The outer case ends the block, and the lambda in its last place.
    pass(
        "def f(b: Bool) -> IO(Unit):\n  match b:\n    case True{}: do IO<Unit>:\n      IO.print(\"a\")\n      \
         IO.bind(Bool, Unit, IO.pure(Bool, True{}), b => match b:\n      case True{}: IO.print(\"yes\")\n      \
         case False{}: IO.print(\"no\"))\n    case False{}: IO.pure(Unit, Unit{})\n",
    );
    pass(
        "def Ask(-A: Type) -> Type:\n  Bool -> A\n\ndef Ask.pure(-A: Type, x: A) -> Ask(A):\n  _ => x\n\n\
         def Ask.bind(-A: Type, -B: Type, m: Ask(A), f: A -> Ask(B)) -> Ask(B):\n  +b => f(m(b), b)\n\n\
         def f(a: Bool) -> Ask(Nat):\n  match a:\n    case True{}: do Ask<Nat>:\n        n : Nat <- Ask.pure(Nat, 1n)\n        \
         b => match b:\n      case True{}: n\n      case False{}: 2n\n    case False{}: Ask.pure(Nat, 3n)\n",
    );
}

#[test]
fn locals_of_all_kinds() {
    pass("def f(n: U32) -> U32:\n  x = U32.inc(n)\n  y : U32 = x;\n  +z = U32.inc(y)\n  -w = 3n\n  (z + z : U32)\n");
    pass("def f(p: U32 & (U32 & U32)) -> U32:\n  (a, b, c) = p\n  (a + b + c : U32)\n");
    pass("type B is Data:\n  B{x: U32, y: U32}\n\ndef f(b: B) -> U32:\n  B{x, y} = b\n  (x - y : U32)\n");
    pass("def f() -> U32:\n  x = 1; y = 2; (x + y : U32)\n");
}

#[test]
fn parallel_lets() {
    pass("def f(n: Nat) -> U32:\n  match n:\n    case 0n: 1\n    case 1n++p:\n      a b = f(p) f(p)\n      (a + b : U32)\n");
    pass("def f() -> U32:\n  a +b c = U32.inc(1) U32.inc(2) U32.inc(3)\n  (a + b + b + c : U32)\n");
}

#[test]
fn array_writes_bind_the_array_anew() {
    pass("def f() -> Array<U32> & U32:\n  a = [0 : U32*8n]\n  a[5] <- 42\n  a[1 + 1] <- 7\n  a[5]\n");
    pass("def f(a: Array<U32>) -> Array<U32>:\n  a[0] <- 1\n");
    pass("def f(+d: Nat) -> Array<U32>:\n  [0 : U32^d]\n");
}

#[test]
fn lambdas_take_marks_and_bodies() {
    term("", "U32 -> U32", "x => U32.inc(x)");
    term("", "U32 -> U32", "+x => (x * x : U32)");
    term("", "U32 -> U32 -> U32", "x => y =>\n    z = U32.inc(x)\n    (z + y : U32)");
    term("", "Bool -> U32", "b =>\n    match b:\n      case True{}: 1\n      case False{}: 0");
    term("", "@-A: Type -> A -> A", "A => x => x");
}

#[test]
fn calls_of_all_kinds() {
    term("", "U32", "U32.add(1, 2)");
    term("", "U32", "U32.add(1 2)");
    term("", "U32", "U32.add(1)(2)");
    pass("def g(+n: Nat) -> U32:\n  1\n\ndef f() -> U32:\n  g!(20n)\n");
    pass("def twice(~f: U32 -> U32, x: U32) -> U32:\n  f(f(x))\n\ndef g() -> U32:\n  twice(~(x => U32.inc(x)), 40)\n\ndef h() -> U32:\n  twice(U32.inc, 40)\n");
}

#[test]
fn a_parenthesis_on_a_new_line_starts_anew() {
    pass("def f(x: U32) -> U32 & U32:\n  y = x\n  (y, 1)\n");
    pass("def f(x: U32) -> List<U32>:\n  y = x\n  [y]\n");
}

#[test]
fn constructions() {
    term("", "Maybe<U32>", "Some{1}");
    term("", "Nat", "Succ{Zero{}}");
    term("", "String", "SCon{'a', SNil{}}");
    term("", "Char", "Chr{97}");
    term("", "U32 & String & Bool", "(1, \"a\", True{})");
    term("", "List<U32>", "[1, 2 3,]");
    term("", "List<U32>", "1 <> 2 <> []");
}

#[test]
fn families_and_their_shorthands() {
    pass("def f(a: List<U32>, b: List<&1, U32>) -> List<&1, U32>:\n  List.append(&1, U32, a, b)\n");
    pass("def f(a: +List<U32>) -> List<&2, U32>:\n  a\n");
    pass("def f(a: List<List<List<U32>>>) -> Nat:\n  List.length(&1, List<List<U32>>, a)\n");
    pass("def f(r: Result<U32 & String, Unit>) -> Nat:\n  0n\n");
    pass("type Q<a> is Data:\n  Q{}\n\ndef f(q: +Q) -> Q<&2>:\n  q\n");
}

#[test]
fn type_expressions() {
    pass("def f(x: U32 | String) -> U32:\n  match x:\n    case Inl{n}: n\n    case Inr{_}: 0\n");
    pass("def f(-q: Quant, -A: Kind(q <&> &2), -B: Type, -C: Data, x: A) -> A:\n  x\n");
    pass("def f(g: @x: U32 -> U32, h: @+y: U32 -> U32, -k: @-A: Type -> A) -> U32:\n  g(h(1))\n");
    pass("def Id(-A: Type) -> Type:\n  A\n\ndef f(x: Id(U32)) -> U32:\n  x\n");
    pass("def f(x: Kind(&0)) -> U32:\n  0\n");
}

#[test]
fn types_that_compute() {
    pass(
        "def Words(n: Nat) -> Type:\n  match n:\n    case 0n: Unit\n    case 1n+p: String & Words(p)\n\n\
         def two() -> Words(2n):\n  (\"a\", \"b\", Unit{})\n\n\
         def fill(n: Nat) -> Words(n):\n  match n:\n    case 0n: Unit{}\n    case 1n+p: (\"x\", fill(p))\n",
    );
    fail(
        "def Words(n: Nat) -> Type:\n  match n:\n    case 0n: Unit\n    case 1n+p: String & Words(p)\n\n\
         def two() -> Words(2n):\n  (\"a\", Unit{})\n",
        "expected : String & Words(0n)",
    );
}

#[test]
fn annotations() {
    term("", "U32", "{1 : U32}");
    term("", "U32", "({1 : U32})");
    term("", "Maybe<U32>", "m = {Some{1} : Maybe<U32>}\n  m");
}

#[test]
fn literals() {
    term("", "U32", "4294967295");
    term("", "Nat", "281474976710655n");
    term("n: Nat", "Nat", "2n+n");
    term("", "F32", "1.5e3");
    term("", "F32", "0.1");
    term("", "Char", "'\\u{1F600}'");
    term("", "Char", "'\\''");
    term("", "String", "\"\\n \\t \\r \\0 \\\\ \\' \\\" \\u{41} é\"");
}

#[test]
fn every_operator_of_u32() {
    for operator in ["+", "-", "*", "/", "%", ".|.", ".^.", ".&."] {
        term("a: U32, b: U32", "U32", &format!("(a {operator} b : U32)"));
    }
    for operator in ["<<", ">>"] {
        term("a: U32, b: Nat", "U32", &format!("(a {operator} b : U32)"));
    }
    for operator in ["<", "<=", ">", ">="] {
        term("a: U32, b: U32", "Bool", &format!("(a {operator} b : U32)"));
    }
}

#[test]
fn operators_with_a_meaning_of_their_own() {
    term("a: Bool, b: Bool, c: Bool", "Bool", "a && b || c");
    term("a: String, b: String", "String", "a ++ b ++ \"c\"");
    term("a: U32, b: U32, +c: U32", "Bool", "(a < c && c < b : U32)");
    term("a: F32, b: F32", "F32", "(a * b + 1.0 : F32)");
    term("a: Nat, b: Nat", "Nat", "(a + b * 2n : Nat)");
}

#[test]
fn operators_reach_into_parentheses_but_not_into_arguments() {
    term("a: U32, b: U32", "U32", "((a + b) * 2 : U32)");
    term("a: U32, b: U32", "U32", "(U32.inc((a + b : U32)) * 2 : U32)");
    fail("def f(a: U32, b: U32) -> U32:\n  (U32.inc(a + b) : U32)\n", "a type for +");
    fail("def f(a: U32) -> Maybe<U32>:\n  (Some{a + 1} : U32)\n", "a type for +");
}

#[test]
fn operators_of_a_type_of_ones_own() {
    pass(
        "type V is Data:\n  V{x: U32, y: U32}\n\ndef V.add(a: V, b: V) -> V:\n  match a b:\n    case V{x, y} V{z, w}: \
         V{(x + z : U32), (y + w : U32)}\n\ndef f(a: V, b: V) -> V:\n  (a + b : V)\n",
    );
}

#[test]
fn every_pattern() {
    pass("def f(xs: List<Nat>) -> Nat:\n  match xs:\n    case []: 0n\n    case [x]: x\n    case 0n <> y <> _: y\n    case 1n+p <> _ <> rest: p\n");
    pass("def f(p: Bool & U32) -> U32:\n  match p:\n    case (True{}, n): n\n    case (False{}, _): 0\n");
    pass("def f(n: U32) -> String:\n  match n:\n    case 0: \"zero\"\n    case 1: \"one\"\n    case +m: U32.show(m) ++ U32.show(m)\n");
    pass("def f(c: Char) -> U32:\n  match c:\n    case 'a': 1\n    case Chr{98}: 2\n    case _: 3\n");
    pass("def f(s: String) -> U32:\n  match s:\n    case \"\": 0\n    case \"yes\": 1\n    case SCon{'n', _}: 2\n    case _: 3\n");
    pass("def f(x: F32) -> U32:\n  match x:\n    case 0.5: 1\n    case _: 2\n");
    pass("def f(n: Nat) -> Nat:\n  match n:\n    case 0n: 0n\n    case 1n: 1n\n    case 5n: 2n\n    case 2n+p: p\n");
    pass("def f(m: Maybe<Maybe<U32>>) -> U32:\n  match m:\n    case Some{Some{x}}: x\n    case Some{None{}}: 1\n    case None{}: 2\n");
}

#[test]
fn a_matched_name_stands_for_what_it_matched() {
    pass("def f(b: Bool) -> Bool:\n  match b:\n    case True{}: b\n    case False{}: b\n");
    pass("def f(xs: List<U32>) -> List<U32>:\n  match xs:\n    case []: xs\n    case _ <> _: xs\n");
}

#[test]
fn every_statement_of_do() {
    pass(
        "def f() -> IO(U32):\n  do IO<U32>:\n    IO.print(\"a step\")\n    IO.print(\"two\"); IO.print(\"three\")\n    \
         now : Nat <- IO.now()\n    +c : Chan(U32) <- Chan.new(U32, 1)\n    Unit <- IO.sleep(1)\n    \
         x : U32 = U32.from_nat(now)\n    r : Result<&1, &1, U32, Unit> <- Chan.send(U32, c, x)\n    \
         Chan.close(U32, c)\n    return 3\n",
    );
}

/// The type in parentheses may come after a match.
#[test]
fn a_match_with_its_type() {
    pass(
        "def f(m: Maybe<&2, U32>) -> Nat:\n  Nat.add(1n, (match m:\n    case Some{_}: 1n\n    case None{}: 2n : Nat))\n",
    );
    pass("def f(m: Maybe<&2, U32>) -> Nat:\n  (match m: case Some{x}: U32.to_nat(x) case None{}: 2n : Nat)\n");
    fail(
        "def f(m: Maybe<&2, U32>) -> Nat:\n  match m:\n    case Some{_}: 1n : Nat\n    case None{}: 2n\n",
        "a term without ':'",
    );
}

#[test]
fn do_of_other_monads() {
    pass("def f(a: String, b: String) -> Maybe<&2, U32>:\n  do Maybe<&2, U32>:\n    x : U32 <- U32.read(a)\n    y : U32 <- U32.read(b)\n    return (x + y : U32)\n");
    pass("def f(r: Result<&1, &1, String, U32>) -> Result<&1, &1, String, Nat>:\n  do Result<String, Nat>:\n    x : U32 <- r\n    n : Nat = U32.to_nat(x)\n    return n\n");
    pass(
        "def State(-S: Type, -A: Type) -> Type:\n  S -> A & S\n\ndef State.pure(-S: Type, -A: Type, x: A) -> State(S, A):\n  \
         s => (x, s)\n\ndef State.then(-S: Type, -A: Type, -B: Type, f: A -> State(S, B), r: A & S) -> B & S:\n  \
         (x, s) = r\n  f(x, s)\n\ndef State.bind(-S: Type, -A: Type, -B: Type, m: State(S, A), f: A -> State(S, B)) -> \
         State(S, B):\n  s => State.then(S, A, B, f, m(s))\n\ndef get() -> State(Nat, Nat):\n  +s => (s, s)\n\n\
         def f() -> State(Nat, Nat):\n  do State<Nat, Nat>:\n    a : Nat <- get()\n    b : Nat <- get()\n    return (a + b : Nat)\n",
    );
}

#[test]
fn do_within_terms() {
    pass("def f(b: Bool) -> IO(Unit):\n  match b:\n    case True{}: do IO<Unit>:\n      IO.print(\"a\")\n      IO.print(\"b\")\n    case False{}:\n      IO.pure(Unit, Unit{})\n");
    pass("def f() -> IO(Unit):\n  IO.spawn(Unit, do IO<Unit>:\n    IO.print(\"a\")\n    IO.print(\"b\"))\n");
    // A function's type needs no parentheses.
    pass(
        "def f() -> IO(Unit):\n  do IO<Unit>:\n    g : U32 -> String = n => U32.show(n)\n    \
         h : U32 -> String <- IO.pure(U32 -> String, U32.show)\n    IO.print(g(1) ++ h(2))\n",
    );
}

#[test]
fn names_have_dots_and_reserved_words_are_prefixes() {
    pass("def a.b.c(x_1: U32) -> U32:\n  x_1\n\ndef format(matches: U32) -> U32:\n  a.b.c(matches)\n\ndef domain() -> U32:\n  1\n");
}

#[test]
fn descent_through_fields_pairs_and_order() {
    pass("type T is Data:\n  L{}\n  N{l: T, r: T}\n\ndef size(t: T) -> Nat:\n  match t:\n    case L{}: 1n\n    case N{l, r}: Nat.add(size(l), size(r))\n");
    pass("def ack(m: Nat, +n: Nat) -> Nat:\n  match m n:\n    case 0n _: 1n+n\n    case 1n+p 0n: ack(p, 1n)\n    case 1n++p 1n+q: ack(p, ack(1n+p, q))\n");
    pass("def f(n: Nat) -> Nat:\n  match n:\n    case 0n: 0n\n    case 1n: 1n\n    case 2n+p: f(1n+p)\n");
}

#[test]
fn affinity_counts_each_path() {
    pass("def f(b: Bool, x: U32) -> U32:\n  match b:\n    case True{}: x\n    case False{}: U32.inc(x)\n");
    pass("def f(x: U32) -> Nat:\n  0n\n");
    pass("def f(x: U32, -n: Nat, e: {n == n : Nat}) -> U32:\n  x\n");
}

#[test]
fn a_colon_in_parentheses_gives_a_type_to_what_has_none() {
    pass("def f() -> Nat:\n  m = (Some{1} : Maybe<U32>)\n  g = (x => x : U32 -> U32)\n  0n\n");
}

#[test]
fn forward_references_without_a_circle_are_fine() {
    pass("def f() -> U32:\n  g()\n\ndef g() -> U32:\n  1\n");
}

#[test]
fn a_pattern_may_take_a_call_apart() {
    pass("def f(a: Nat, b: Nat) -> Nat:\n  (q, r) = Nat.divmod(a, b)\n  (q + r : Nat)\n");
}
