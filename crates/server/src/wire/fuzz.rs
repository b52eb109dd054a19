//! Random messages, and messages that coverage leads to (`cargo bolero test`, `make soak`): reading
//! never panics, and makes no more memory than the message has.

use super::message::{Bind, Message, parse};
use crate::scram::{Exchange, Verifier};

/// Bytes that a message holds, about.
fn n_bytes(message: &Message) -> usize {
    match message {
        Message::Query(sql) | Message::CopyFail(sql) => sql.len(),
        Message::Parse { name, sql, types } => name.len() + sql.len() + types.len() * 4,
        Message::Bind(Bind { portal, statement, formats, values, answer_formats }) => {
            let values: usize = values.iter().map(|value| 4 + value.as_ref().map_or(0, Vec::len)).sum();
            portal.len() + statement.len() + 2 * (formats.len() + answer_formats.len()) + values
        }
        Message::CopyData(bytes) | Message::Password(bytes) => bytes.len(),
        _ => 0,
    }
}

#[test]
fn any_bytes_may_be_a_message() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let Some((letter, body)) = bytes.split_first() else { return };
        if let Ok(message) = parse(*letter, body) {
            assert!(n_bytes(&message) <= body.len(), "{message:?}");
        }
    });
}

#[test]
fn any_texts_may_be_an_exchange_of_passwords() {
    let verifier = Verifier::make("secret").unwrap();
    bolero::check!().for_each(|bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let _ = Verifier::parse(&text);
        let (first, last) = text.split_once('\n').unwrap_or((&text, ""));
        if let Ok((exchange, told)) = Exchange::begin(verifier.clone(), first) {
            let nonce = told[2..].split(',').next().unwrap();
            // The right header and nonce in front, so that proofs are reached.
            let last = last.replace("NONCE", nonce);
            assert!(!matches!(exchange.finish(&last), Ok(Some(_))), "a password was guessed");
        }
    });
}
