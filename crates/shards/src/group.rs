//! Shards of one process at work, a thread each, and their connections to other processes.

use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use anabranch_engine::Error;
use anabranch_flow::processors::take_own;

use crate::address::{Address, ShardClient};
use crate::layout::Layout;
use crate::message::{Carry, Load, Message, Said};
use crate::processes::Processes;
use crate::processes::frame::WireFrame;
use crate::processes::link::{Inlet, read_frames, write_frames};
use crate::tasks::Tasks;
use crate::traffic::{CLIENT, Traffic};
use crate::worker::{Post, work};

/// How long another process may take to end a connection, before it is cut.
const PATIENCE: Duration = Duration::from_secs(5);

/// Shards of one process at work; dropped, they and their connections are gone.
pub struct Group {
    /// Where each shard of the run is reached.
    pub shards: Vec<Address>,
    /// What has been said to the client; in other processes than the client's, nothing.
    pub results: Receiver<Said>,
    /// What is under way.
    pub traffic: Arc<Traffic>,
    threads: Vec<JoinHandle<()>>,
    links: Vec<JoinHandle<()>>,
    streams: Vec<TcpStream>,
}

/// Where frames to another process are queued, and from where they are written.
type Queue = (Option<Sender<WireFrame>>, Option<Receiver<WireFrame>>);

impl Group {
    /// Starts the shards of this process.
    ///
    /// # Errors
    /// `Invalid` when the layout has another number of processes; `Unavailable` when threads cannot
    /// be had.
    pub fn start(
        tasks: &Arc<Tasks>,
        layout: Layout,
        carry: Carry,
        processes: Option<Processes>,
    ) -> Result<Group, Error> {
        let (process, streams) = match processes {
            Some(Processes { process, streams }) => (Some(process), streams),
            None => (None, vec![]),
        };
        if process.is_some() {
            check_processes(layout, streams.len())?;
        }
        let (links, queues): Queues = streams.iter().map(queue).unzip();
        let traffic = Arc::new(Traffic::new(process.unwrap_or(CLIENT), links, layout.shards(), tasks.list.len()));
        let (client, results) = channel();
        let (shards, inboxes): Shards = (0..layout.shards()).map(|shard| addressed(layout, process, shard)).unzip();
        let mut group = Group { shards, results, traffic, threads: vec![], links: vec![], streams: vec![] };
        let to_client = match process.unwrap_or(CLIENT) {
            CLIENT => ShardClient::Here(client.clone()),
            _ => ShardClient::There,
        };
        group.start_shards(tasks, carry, inboxes, &to_client)?;
        group.start_links(tasks, streams, queues, &client)?;
        Ok(group)
    }

    /// Starts the shards that have an inbox here.
    fn start_shards(
        &mut self,
        tasks: &Arc<Tasks>,
        carry: Carry,
        inboxes: Vec<Option<Receiver<Message>>>,
        client: &ShardClient,
    ) -> Result<(), Error> {
        let here = inboxes.iter().flatten().count();
        let of_each = inboxes.into_iter().enumerate().filter_map(|(shard, inbox)| Some((shard, inbox?)));
        for (index, (shard, inbox)) in of_each.enumerate() {
            let (tasks, shards, client) = (Arc::clone(tasks), self.shards.clone(), client.clone());
            let post = Post { shard, tasks, carry, inbox, shards, client, traffic: Arc::clone(&self.traffic) };
            self.threads.push(spawn(format!("shard-{shard}"), move || {
                // (Messages are short, and the system would leave both threads where one is.)
                take_own(index, here);
                work(post);
            })?);
        }
        Ok(())
    }

    /// Starts the threads of all connections. The first frame of each is the program.
    fn start_links(
        &mut self,
        tasks: &Tasks,
        streams: Vec<Option<TcpStream>>,
        queues: Vec<Option<Receiver<WireFrame>>>,
        client: &Sender<Said>,
    ) -> Result<(), Error> {
        let program: Arc<str> = tasks.text().into();
        for (from, (stream, queue)) in streams.into_iter().zip(queues).enumerate() {
            let (Some(stream), Some(queue)) = (stream, queue) else { continue };
            self.traffic.tell(from, WireFrame::Program(program.to_string()));
            let inlet = Inlet {
                from,
                shards: self.shards.clone(),
                tasks: tasks.list.len(),
                program: Arc::clone(&program),
                client: client.clone(),
                traffic: Arc::clone(&self.traffic),
            };
            self.link(stream, queue, inlet)?;
        }
        Ok(())
    }

    fn link(&mut self, stream: TcpStream, queue: Receiver<WireFrame>, inlet: Inlet) -> Result<(), Error> {
        let copy = || stream.try_clone().map_err(|error| Error::unavailable(format!("no connection: {error}")));
        let (reading, writing) = (copy()?, copy()?);
        self.streams.push(stream);
        let from = inlet.from;
        self.links.push(spawn(format!("from-process-{from}"), move || read_frames(&reading, &inlet))?);
        self.links.push(spawn(format!("to-process-{from}"), move || write_frames(&writing, &queue))?);
        Ok(())
    }
}

/// The connections' queues: their ends to send to, and to write from.
type Queues = (Vec<Option<Sender<WireFrame>>>, Vec<Option<Receiver<WireFrame>>>);

/// Where shards are reached, and the inboxes of those that are here.
type Shards = (Vec<Address>, Vec<Option<Receiver<Message>>>);

/// The layout has as many processes as are connected.
fn check_processes(layout: Layout, connected: usize) -> Result<(), Error> {
    let processes = layout.shards() / layout.threads();
    if processes == connected {
        return Ok(());
    }
    Err(Error::invalid(format!("a layout of processes: {processes}, run in processes: {connected}"))
        .with_hint("Layout::grid(processes, threads) says how many there are."))
}

/// Where a shard is reached, from this process.
fn addressed(layout: Layout, here: Option<usize>, shard: usize) -> (Address, Option<Receiver<Message>>) {
    let process = layout.process(shard);
    if here.is_some_and(|here| here != process) {
        return (Address::There { process, shard }, None);
    }
    let (sender, inbox) = channel();
    (Address::Here { shard, inbox: sender }, Some(inbox))
}

fn queue(stream: &Option<TcpStream>) -> Queue {
    stream.as_ref().map(|_| channel()).unzip()
}

fn spawn(name: String, body: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Error> {
    let thread = Builder::new().name(name.clone()).spawn(body);
    thread.map_err(|error| Error::unavailable(format!("no thread {name}: {error}")))
}

impl Drop for Group {
    fn drop(&mut self) {
        for shard in &self.shards {
            if let Address::Here { inbox, .. } = shard {
                // (A shard that has gone away needs no order to.)
                let _ = inbox.send(Message::new(0, 0, Load::Stop));
            }
        }
        self.traffic.tell_all(|| WireFrame::Stop);
        for thread in self.threads.drain(..) {
            // (A panic has been said as an error.)
            let _ = thread.join();
        }
        self.traffic.wait_for_links(PATIENCE);
        for stream in &self.streams {
            // (A connection that has ended needs no cut.)
            let _ = stream.shutdown(Shutdown::Both);
        }
        for thread in self.links.drain(..) {
            let _ = thread.join();
        }
    }
}
