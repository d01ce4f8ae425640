//! `kdyno-layout JOB`: what each order of a job costs by prediction, and the one that a search comes to, as JSON.
//!
//! job: what is asked · place: where an order puts things · replay, predict: what that costs · part, window: what a search
//! looks at · exact, accesses, sets, fit: two models of it · room, rng, anneal, search: a better order

#![forbid(unsafe_code)]

mod accesses;
mod anneal;
mod exact;
mod fit;
mod job;
mod part;
mod place;
mod predict;
mod replay;
mod rng;
mod room;
mod search;
mod sets;
#[cfg(test)]
mod tests;
mod window;

use job::Job;
use place::Order;
use predict::Predicted;
use serde::Serialize;
use std::process::ExitCode;

#[derive(Serialize)]
struct Answer {
    /// Under the layout that was recorded, by family and trace.
    recorded: Vec<Vec<Predicted>>,
    /// Under each order of the job, and then the one that was found.
    orders: Vec<Vec<Vec<Predicted>>>,
    /// Units, if there was a search.
    found: Option<Order>,
}

fn answer(job: &Job) -> Answer {
    let recorded: Vec<u64> = job.units.iter().map(|unit| unit.start).collect();
    let mut orders: Vec<_> =
        job.orders.iter().map(|order| predict::whole(job, &place::addresses(job, &Order::plain(order)))).collect();
    let found = (job.moves > 0).then(|| search::best_order(job));
    if let Some(order) = &found {
        orders.push(predict::whole(job, &place::addresses(job, order)));
    }
    Answer { recorded: predict::whole(job, &recorded), orders, found }
}

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [path] = &arguments[..] else {
        eprintln!("kdyno-layout: usage: kdyno-layout JOB");
        return ExitCode::from(2);
    };
    let job = std::fs::read(path).map_err(|error| error.to_string()).and_then(|data| Job::read(&data));
    match job {
        Ok(job) => {
            println!("{}", serde_json::to_string(&answer(&job)).expect("numbers"));
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("kdyno-layout: {}: {why}", path.display());
            ExitCode::FAILURE
        }
    }
}
