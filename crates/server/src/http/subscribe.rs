//! `GET /subscribe?query=SELECT ..` or `?relation=name`: changes as server-sent events.
//!
//! An event `change` is a row with `time` and `diff`; `progress` is a time before which all changes
//! were given; `error` and `end` come last. A reader that is slow or gone ends its subscription.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::{Changes, Connection, Error, Outcome, Subscription};
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::spawn_blocking;

use super::json::rows;
use super::{connect, refused, told};
use crate::shared::ServerShared;

/// Events that wait for a slow reader.
const EVENTS_MAX: usize = 64;
const CHANGES_WAIT: Duration = Duration::from_millis(250);

/// What is asked for.
#[derive(Deserialize)]
pub(super) struct WantedSubscription {
    /// A query.
    query: Option<String>,
    /// A relation.
    relation: Option<String>,
    /// `false` leaves out what is there at the beginning.
    snapshot: Option<bool>,
    /// `true` tells times that are complete.
    progress: Option<bool>,
}

impl WantedSubscription {
    fn statement(&self) -> Result<String, Error> {
        let of = match (&self.query, &self.relation) {
            (Some(query), None) => format!("({})", query.trim().trim_end_matches(';')),
            (None, Some(relation)) => format!("\"{}\"", relation.replace('"', "\"\"")),
            _ => return Err(Error::invalid("give query=SELECT .. or relation=name")),
        };
        let (snapshot, progress) = (self.snapshot.unwrap_or(true), self.progress.unwrap_or(false));
        Ok(format!("SUBSCRIBE {of} WITH (SNAPSHOT = {snapshot}, PROGRESS = {progress})"))
    }
}

pub(super) async fn subscribe(
    State(shared): State<Arc<ServerShared>>,
    Query(wanted): Query<WantedSubscription>,
    headers: HeaderMap,
) -> Response {
    let sql = match wanted.statement() {
        Ok(sql) => sql,
        Err(error) => return refused(&error),
    };
    let mut connection = match connect(&shared, &headers).await {
        Ok(connection) => connection,
        Err(refusal) => return *refusal,
    };
    let begun = spawn_blocking(move || {
        let outcome = connection.execute(&sql).map(|mut outcomes| outcomes.pop());
        (connection, outcome)
    });
    let (connection, subscription) = match begun.await {
        Ok((connection, Ok(Some(Outcome::Subscription(subscription))))) => (connection, subscription),
        Ok((_, Err(error))) => return refused(&error),
        _ => return refused(&Error::invalid("the query cannot be subscribed")),
    };
    let (sender, receiver) = channel(EVENTS_MAX);
    spawn_blocking(move || follow(&shared, connection, subscription, &sender));
    Sse::new(events(receiver)).keep_alive(KeepAlive::default()).into_response()
}

fn events(receiver: Receiver<Event>) -> impl futures::Stream<Item = Result<Event, Infallible>> {
    futures::stream::unfold(
        receiver,
        |mut receiver| async move { receiver.recv().await.map(|event| (Ok(event), receiver)) },
    )
}

/// Passes changes on until they end or the client is gone.
fn follow(shared: &ServerShared, mut connection: Connection, subscription: Subscription, sender: &Sender<Event>) {
    let event = |name: &str, value: &Value| Event::default().event(name).data(value.to_string());
    while !sender.is_closed() && !shared.peers.is_ending() {
        let events = match connection.next_changes(&subscription, CHANGES_WAIT) {
            Ok(Changes::Rows(batches)) => match rows(subscription.schema(), &batches) {
                Value::Array(rows) => rows.iter().map(|row| event("change", row)).collect(),
                _ => vec![],
            },
            Ok(Changes::Progress(time)) => vec![event("progress", &json!({ "time": time }))],
            Ok(Changes::Nothing) => continue,
            Ok(Changes::End) => {
                let _ = sender.blocking_send(event("end", &json!({})));
                return;
            }
            Err(error) => {
                let _ = sender.blocking_send(event("error", &told(&error)));
                return;
            }
        };
        for event in events {
            if sender.blocking_send(event).is_err() {
                return;
            }
        }
    }
}
