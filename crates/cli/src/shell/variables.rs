//! `\set name value`: texts that stand in statements by name, as in psql.
//!
//! `:name` is the value as it is, `:'name'` the value as a text in quotes, `:"name"` as a name in
//! quotes. Names that are not set stay as they are written, and so does what stands in quotes and
//! comments, and `::`.

use std::{borrow::Cow, collections::BTreeMap};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Variables(BTreeMap<String, String>);

impl Variables {
    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), value.to_owned());
    }

    pub(super) fn unset(&mut self, name: &str) {
        self.0.remove(name);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&String, &String)> {
        self.0.iter()
    }

    /// The text with values in place of names.
    pub(crate) fn put_into<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.0.is_empty() || !text.contains(':') {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            if let Some((value, length)) = self.value_at(rest) {
                out.push_str(&value);
                at += length;
                continue;
            }
            let length = kept(rest);
            out.push_str(&rest[..length]);
            at += length;
        }
        Cow::Owned(out)
    }

    /// The value of the name at the front of a text, and how long the name is there.
    fn value_at(&self, rest: &str) -> Option<(String, usize)> {
        let behind = rest.strip_prefix(':')?;
        let quote = behind.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let name = &behind[quote.map_or(0, char::len_utf8)..];
        let length = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
        let (name, end) = name.split_at(length);
        let value = self.0.get(name)?;
        match quote {
            None => Some((value.clone(), 1 + length)),
            Some(quote) => {
                end.starts_with(quote).then_some(())?;
                let doubled = value.replace(quote, &format!("{quote}{quote}"));
                Some((format!("{quote}{doubled}{quote}"), length + 3))
            }
        }
    }
}

/// Bytes at the front of a text that stay as they are: a quote, a comment, `::`, or one character.
fn kept(rest: &str) -> usize {
    let up_to = |end: &str, from: usize| rest[from..].find(end).map_or(rest.len(), |at| from + at + end.len());
    match rest.as_bytes() {
        [b'\'', ..] => up_to("'", 1),
        [b'"', ..] => up_to("\"", 1),
        [b'-', b'-', ..] => up_to("\n", 2),
        [b'/', b'*', ..] => up_to("*/", 2),
        [b':', b':' | b'=', ..] => 2,
        _ => rest.chars().next().map_or(1, char::len_utf8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_where_their_names_do() {
        let mut variables = Variables::default();
        variables.set("n", "5");
        variables.set("who", "O'Hara");
        let put = |text: &str| variables.put_into(text).into_owned();
        assert_eq!(put("select :n, :'who', :\"who\""), "select 5, 'O''Hara', \"O'Hara\"");
        for text in ["select 1::n", "select ':n' -- :n", "select \":n\" /* :n */", "f(a := 1, b => :m)", "a[1:2]"] {
            assert_eq!(put(text), text);
        }
        variables.unset("n");
        assert_eq!(variables.put_into("select :n"), "select :n");
    }
}
