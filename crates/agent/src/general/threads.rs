//! Threads of one process: locks, conditions, queues, barriers; and what they share with the kernel (futex, TLS).

use super::child::Child;
use super::load::Named;
use crate::sys::{Failure, Stop};
use std::sync::{Arc, Barrier, Condvar, Mutex, mpsc};
use std::thread;

const THREADS: usize = 4;
const TURNS: usize = 40;

pub fn round() -> Result<(), Stop> {
    // In a process of its own, because one with threads must not fork.
    Child::spawn(work)?.wait()
}

fn work() -> Result<(), Failure> {
    let barrier = Arc::new(Barrier::new(THREADS));
    // Whose turn it is: each waits for its own.
    let turn = Arc::new((Mutex::new(0_usize), Condvar::new()));
    let (tell, receiver) = mpsc::sync_channel(2);
    let mut running = Vec::new();
    for number in 0..THREADS {
        let (barrier, turn, tell) = (barrier.clone(), turn.clone(), tell.clone());
        let start = thread::Builder::new().stack_size(64 << 10).spawn(move || {
            barrier.wait();
            for _ in 0..TURNS {
                let (lock, changed) = &*turn;
                let mine = lock.lock().and_then(|now| changed.wait_while(now, |now| *now % THREADS != number));
                if let Ok(mut now) = mine {
                    *now += 1;
                }
                changed.notify_all();
                // Fails only if the receiver has gone, which counts what came.
                let _ = tell.send(number);
                thread::yield_now();
            }
            barrier.wait();
        });
        running.push(start.named("clone()")?);
    }
    drop(tell);
    let received = receiver.iter().count();
    for thread in running {
        let _ = thread.join();
    }
    let expected = THREADS * TURNS;
    if received == expected {
        Ok(())
    } else {
        Err(Failure::Short { call: "messages of threads", wanted: expected, got: received })
    }
}
