//! `#[tidegate::main]` and `#[tidegate::test]`: an `async fn` without arguments that runs on a runtime of its own.
//!
//! Written on `proc_macro` alone: of the function only three things matter, the word `async`, the name and the empty
//! parentheses behind it; everything else is handed on as it is.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

/// Runs an `async fn main` on a runtime: a local one, or, with `threads = 4`, a pool of so many threads.
///
/// Other options: `closed_world` (off unless set), `virtual_time` (off unless set), each `= true` or `= false`. A deadlock
/// is reported on the standard error, and the exit status is 1.
///
/// ```rust,ignore
/// #[tidegate::main(closed_world = true)]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     Ok(())
/// }
/// ```
#[proc_macro_attribute]
pub fn main(options: TokenStream, function: TokenStream) -> TokenStream {
    expand(options, function, "main", false).unwrap_or_else(Error::into_tokens)
}

/// Makes an `async fn` a test, on a runtime in a closed world: one that hangs fails, and says what it waits for. The runtime
/// is a local one, or, with `threads = 4`, a pool of so many threads.
///
/// Other options: `closed_world` (on unless set), `virtual_time` (off unless set), each `= true` or `= false`.
///
/// ```rust,ignore
/// #[tidegate::test(virtual_time = true)]
/// async fn a_day_passes() {
///     tidegate::time::sleep(std::time::Duration::from_secs(24 * 3600)).await;
/// }
/// ```
#[proc_macro_attribute]
pub fn test(options: TokenStream, function: TokenStream) -> TokenStream {
    expand(options, function, "test", true).unwrap_or_else(Error::into_tokens)
}

/// What is wrong, and where.
struct Error {
    at: Span,
    text: String,
}

impl Error {
    fn new(at: Span, text: impl Into<String>) -> Error {
        Error { at, text: text.into() }
    }

    /// `::core::compile_error! { "text" }`, at the place.
    fn into_tokens(self) -> TokenStream {
        let mut text = Literal::string(&self.text);
        text.set_span(self.at);
        let mut call = Group::new(Delimiter::Brace, TokenTree::from(text).into());
        call.set_span(self.at);
        let mut tokens: Vec<TokenTree> = path(&["core", "compile_error"]);
        tokens.extend([TokenTree::from(Punct::new('!', Spacing::Alone)), call.into()]);
        for token in &mut tokens {
            token.set_span(self.at);
        }
        tokens.into_iter().collect()
    }
}

struct Options {
    threads: Literal,
    closed_world: bool,
    virtual_time: bool,
}

fn parse_options(tokens: TokenStream, name: &str, closed_world: bool) -> Result<Options, Error> {
    let mut options = Options { threads: Literal::usize_unsuffixed(1), closed_world, virtual_time: false };
    let mut tokens = tokens.into_iter();
    while let Some(option) = tokens.next() {
        let word = option.to_string();
        let takes = match word.as_str() {
            "threads" => "a number: `= 4`",
            "closed_world" | "virtual_time" => "`= true` or `= false`",
            other => {
                let known = "`threads`, `closed_world` and `virtual_time` are";
                let text = format!("`{other}` is no option of #[tidegate::{name}]: {known}");
                return Err(Error::new(option.span(), text));
            }
        };
        let wanted = || Error::new(option.span(), format!("`{option}` takes {takes}"));
        match tokens.next() {
            Some(TokenTree::Punct(sign)) if sign.as_char() == '=' => {}
            _ => return Err(wanted()),
        }
        match (word.as_str(), tokens.next()) {
            ("threads", Some(TokenTree::Literal(value))) if is_count(&value) => options.threads = value,
            ("threads", _) | (_, None) => return Err(wanted()),
            (_, Some(value)) => {
                let is_on = match value.to_string().as_str() {
                    "true" => true,
                    "false" => false,
                    _ => return Err(wanted()),
                };
                match word.as_str() {
                    "closed_world" => options.closed_world = is_on,
                    _ => options.virtual_time = is_on,
                }
            }
        }
        match tokens.next() {
            None => break,
            Some(TokenTree::Punct(comma)) if comma.as_char() == ',' => {}
            Some(other) => return Err(Error::new(other.span(), "options are separated by commas")),
        }
    }
    Ok(options)
}

/// A number of threads, at least one.
fn is_count(value: &Literal) -> bool {
    value.to_string().replace('_', "").parse::<usize>().is_ok_and(|count| count > 0)
}

/// `::a::b`, with the leading colons.
fn path(parts: &[&str]) -> Vec<TokenTree> {
    let colons = || [Punct::new(':', Spacing::Joint), Punct::new(':', Spacing::Alone)].map(TokenTree::from);
    parts.iter().flat_map(|part| colons().into_iter().chain([Ident::new(part, Span::call_site()).into()])).collect()
}

/// The function, split where something is put in between.
struct Function {
    /// Attributes and visibility.
    front: Vec<TokenTree>,
    /// From `fn` to the end of the signature.
    signature: Vec<TokenTree>,
    name: Ident,
    body: Group,
}

fn parse_function(tokens: TokenStream, name: &str) -> Result<Function, Error> {
    let mut tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is = |token: &TokenTree, word: &str| matches!(token, TokenTree::Ident(ident) if ident.to_string() == word);
    let wanted = |at: Span| Error::new(at, format!("#[tidegate::{name}] goes on an `async fn` without arguments"));
    let start = tokens.iter().position(|token| is(token, "fn")).ok_or_else(|| wanted(Span::call_site()))?;
    let at = tokens[start].span();
    if start == 0 || !is(&tokens[start - 1], "async") {
        return Err(wanted(at));
    }
    let (Some(TokenTree::Ident(own)), Some(TokenTree::Group(arguments))) =
        (tokens.get(start + 1), tokens.get(start + 2))
    else {
        return Err(wanted(at));
    };
    if arguments.delimiter() != Delimiter::Parenthesis || !arguments.stream().is_empty() {
        return Err(wanted(arguments.span()));
    }
    let own = own.clone();
    let Some(TokenTree::Group(body)) = tokens.pop() else { return Err(wanted(at)) };
    let signature = tokens.split_off(start);
    // The word `async`.
    tokens.pop();
    Ok(Function { front: tokens, signature, name: own, body })
}

/// The function without `async`, which has the one with it inside and runs it:
///
/// ```text
/// #[test] fn name() -> T { async fn name() -> T { … } ::tidegate::runtime::run_test(name(), threads, closed, virtual) }
/// ```
fn expand(options: TokenStream, function: TokenStream, name: &str, is_test: bool) -> Result<TokenStream, Error> {
    let options = parse_options(options, name, is_test)?;
    let Function { front, signature, name: own, body } = parse_function(function, name)?;
    let word = |word: &str| TokenTree::from(Ident::new(word, Span::call_site()));
    let group =
        |delimiter, tokens: Vec<TokenTree>| TokenTree::from(Group::new(delimiter, tokens.into_iter().collect()));
    let comma = || TokenTree::from(Punct::new(',', Spacing::Alone));

    let call = vec![own.into(), group(Delimiter::Parenthesis, Vec::new())];
    let mut arguments = call;
    arguments.extend([comma(), options.threads.into()]);
    for option in [options.closed_world, options.virtual_time] {
        arguments.extend([comma(), word(if option { "true" } else { "false" })]);
    }
    let mut inner = vec![word("async")];
    inner.extend(signature.iter().cloned());
    inner.push(body.into());
    inner.extend(path(&["tidegate", "runtime", if is_test { "run_test" } else { "run_main" }]));
    inner.push(group(Delimiter::Parenthesis, arguments));

    let mut tokens = Vec::new();
    if is_test {
        let attribute = path(&["core", "prelude", "v1", "test"]);
        tokens.extend([TokenTree::from(Punct::new('#', Spacing::Alone)), group(Delimiter::Bracket, attribute)]);
    }
    tokens.extend(front);
    tokens.extend(signature);
    tokens.push(group(Delimiter::Brace, inner));
    Ok(tokens.into_iter().collect())
}
