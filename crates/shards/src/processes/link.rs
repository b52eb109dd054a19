//! The two threads of a connection: one writes what is queued, one hands out what comes.
//!
//! Law: a reader never waits for a writer, so two processes that send each other more than sockets
//! hold do not wait for each other for ever. Queues are unbounded; the client's window of messages
//! bounds what enters the run.

use std::io::{self, BufReader, BufWriter, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use anabranch_engine::Error;

use crate::address::Address;
use crate::message::{Message, Said};
use crate::processes::frame::WireFrame;
use crate::traffic::Traffic;

/// Bytes of a connection's buffers.
const BUFFER_BYTES: usize = 1 << 16;

/// Where frames of another process go.
pub struct Inlet {
    /// The other process.
    pub from: usize,
    /// Shards, by their numbers.
    pub shards: Vec<Address>,
    /// Number of steps of the program.
    pub tasks: usize,
    /// The program, as text.
    pub program: Arc<str>,
    /// The client, in its process.
    pub client: Sender<Said>,
    /// What is under way.
    pub traffic: Arc<Traffic>,
}

/// Writes frames until the last one, [`Frame::Stop`], or until the connection fails.
pub(crate) fn write_frames(stream: &TcpStream, frames: &Receiver<WireFrame>) {
    // (A connection that failed is noticed by its reader.)
    let _ = write_all(stream, frames);
    let _ = stream.shutdown(Shutdown::Write);
}

fn write_all(stream: &TcpStream, frames: &Receiver<WireFrame>) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(BUFFER_BYTES, stream);
    while let Ok(first) = frames.recv() {
        let mut next = Some(first);
        while let Some(frame) = next {
            frame.write(&mut writer)?;
            if matches!(frame, WireFrame::Stop) {
                return writer.flush();
            }
            next = frames.try_recv().ok();
        }
        writer.flush()?;
    }
    Ok(())
}

/// Hands out frames until the last one. A connection that ends without it ends the run.
pub(crate) fn read_frames(stream: &TcpStream, inlet: &Inlet) {
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, stream);
    let ended = loop {
        match WireFrame::read(&mut reader) {
            Ok(Some(WireFrame::Stop)) => break Ok(()),
            Ok(Some(frame)) => {
                if let Err(error) = inlet.take(frame) {
                    inlet.traffic.fail(error);
                }
            }
            Ok(None) => break Err(gone(inlet.from)),
            Err(error) => break Err(gone(inlet.from).with_detail(error.to_string())),
        }
    };
    if let Err(error) = ended {
        inlet.traffic.fail(error);
    }
    inlet.traffic.stop();
    inlet.traffic.link_ended();
}

fn gone(process: usize) -> Error {
    Error::unavailable(format!("process {process} has gone away"))
        .with_hint("Start all processes of the run again, and give it its rows again.")
}

impl Inlet {
    fn take(&self, frame: WireFrame) -> Result<(), Error> {
        match frame {
            WireFrame::Program(text) => return self.check_program(&text),
            WireFrame::Message { target, message } => return self.take_message(target, message),
            WireFrame::Said(said) => {
                self.check_shard(said.shard)?;
                // (A client that has gone away stops the run.)
                let _ = self.client.send(said);
                self.traffic.tell(self.from, WireFrame::Acknowledged(0));
            }
            WireFrame::Counted { shard, steps } => {
                self.check_shard(shard)?;
                self.traffic.counted_there(shard, steps);
                self.traffic.tell(self.from, WireFrame::Acknowledged(0));
            }
            WireFrame::Acknowledged(bytes) => self.traffic.end(None, bytes),
            WireFrame::Failed(error) => self.traffic.fail(error),
            WireFrame::Stop => {}
        }
        Ok(())
    }

    fn take_message(&self, target: usize, message: Message) -> Result<(), Error> {
        self.check_shard(message.from)?;
        let Some(Address::Here { inbox, .. }) = self.shards.get(target) else {
            return Err(self.stray(format!("shard {target}, which is not of this process")));
        };
        if message.task >= self.tasks {
            return Err(self.stray(format!("step {}, of {}", message.task, self.tasks)));
        }
        let owed = self.traffic.arrived(self.from, message.bytes);
        // (A shard that has gone away has said why.)
        self.traffic.counts[target].queue();
        let _ = inbox.send(Message { owed, ..message });
        Ok(())
    }

    fn check_shard(&self, shard: usize) -> Result<(), Error> {
        match shard < self.shards.len() {
            true => Ok(()),
            false => Err(self.stray(format!("shard {shard}, of {}", self.shards.len()))),
        }
    }

    fn stray(&self, what: String) -> Error {
        Error::internal(format!("process {} sends something of {what}", self.from))
    }

    /// Both processes run one program.
    fn check_program(&self, theirs: &str) -> Result<(), Error> {
        if *self.program == *theirs {
            return Ok(());
        }
        let differs = self.program.lines().zip(theirs.lines()).find(|(ours, theirs)| ours != theirs);
        let error = Error::invalid(format!("process {} runs another program", self.from));
        Err(match differs {
            Some((ours, theirs)) => error.with_detail(format!("Here: {ours}. There: {theirs}.")),
            None => error.with_detail("One program has more steps."),
        })
    }
}
