//! What users hear of an object store: what is wrong, and what to do.

use std::error::Error;
use std::io::{self, ErrorKind};

/// The error of a disk for one of an object store.
pub(crate) fn of_store(bucket: &str, error: object_store::Error) -> io::Error {
    let causes = causes(&error);
    let says = |word: &str| causes.iter().any(|cause| cause.contains(word));
    if says("NoSuchBucket") {
        return io::Error::other(format!("bucket {bucket} does not exist: make it, or name another"));
    }
    // (The last place where credentials are looked for is the machine's own.)
    if says("latest/api/token") || says("security-credentials") {
        return io::Error::other(
            "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this machine a role",
        );
    }
    match &error {
        object_store::Error::NotFound { .. } => ErrorKind::NotFound.into(),
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            io::Error::other(format!(
                "bucket {bucket} refuses the credentials: they need the rights to list, read, write and delete there"
            ))
        }
        _ if says("onnection refused") || says("dns error") || says("timed out") || says("error trying to connect") => {
            io::Error::other(format!("the object store cannot be reached: {}", last(&causes)))
        }
        _ => io::Error::other(format!("the object store answers: {}", last(&causes))),
    }
}

/// The error and what it rests on, each as it says.
fn causes(error: &object_store::Error) -> Vec<String> {
    let mut causes = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(inner) = cause {
        causes.push(inner.to_string());
        cause = inner.source();
    }
    causes
}

/// The innermost cause, on one line and not long.
fn last(causes: &[String]) -> String {
    let text = causes.last().map_or("", String::as_str);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(200).collect()
}
