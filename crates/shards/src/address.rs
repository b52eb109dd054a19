//! Where a shard, or the client, is reached: in this process by a channel, elsewhere by a link.

use std::sync::mpsc::Sender;

use crate::message::{Message, Said};
use crate::processes::frame::WireFrame;
use crate::traffic::{CLIENT, Traffic};

/// Where a shard is reached.
#[derive(Clone)]
pub enum Address {
    /// In this process.
    Here {
        /// Its number.
        shard: usize,
        /// What comes to it.
        inbox: Sender<Message>,
    },
    /// In another one.
    There {
        /// Its process.
        process: usize,
        /// Its number.
        shard: usize,
    },
}

impl Address {
    /// Sends a message, counted as under way. A shard that has gone away has said why.
    pub fn send(&self, message: Message, traffic: &Traffic) {
        traffic.begin(message.bytes);
        match self {
            Address::Here { shard, inbox } => {
                traffic.counts[*shard].queue();
                let _ = inbox.send(message);
            }
            Address::There { process, shard } => traffic.tell(*process, WireFrame::Message { target: *shard, message }),
        }
    }
}

/// Where the client is reached.
#[derive(Clone)]
pub enum ShardClient {
    /// In this process.
    Here(Sender<Said>),
    /// In the client's process.
    There,
}

impl ShardClient {
    /// Says something to the client. A client that has gone away stops the run.
    pub fn say(&self, said: Said, traffic: &Traffic) {
        match self {
            ShardClient::Here(client) => {
                let _ = client.send(said);
            }
            ShardClient::There => {
                traffic.begin(0);
                traffic.tell(CLIENT, WireFrame::Said(said));
            }
        }
    }
}
