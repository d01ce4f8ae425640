//! A kernel of functions that call each other in turn, and what is true of every layout of it.

use crate::anneal::Model;
use crate::answer;
use crate::exact::Exact;
use crate::job::Job;
use crate::part::parts;
use crate::place::{Order, addresses};
use crate::room::{GRAIN, Room};
use crate::sets::Sets;
use kdyno_model::geometry::SMALL;
use proptest::collection::vec;
use proptest::prelude::*;

const TEXT: u64 = 0xffff_ffff_8100_0000;
/// Functions, of which the first half runs, each with one block of a line and a half. As they lie, their blocks are in two
/// sets of the first cache, which has eight sets of two lines.
const UNITS: u64 = 12;
const HOT: u64 = UNITS / 2;
const SIZE: u64 = 500;
const PITCH: u64 = 512;

/// Return a job as it is written: the functions run one after the other, so many times.
fn written(moves: u32, turns: u64) -> Vec<u8> {
    let order: Vec<u64> = (0..HOT).collect();
    let (blocks, steps) = (HOT, HOT * turns);
    let header = format!(
        r#"{{"families":[{SMALL:?}],"weights":[[1,1]],"base":{TEXT},"units":{UNITS},"orders":[{order:?}],"guard":0.01,
        "moves":{moves},"seed":3,"traces":[{{"boot":0,"blocks":{blocks},"steps":{steps},"cycles":[50000]}}]}}"#
    );
    let mut data = format!("kdyno-layout 1\n{}\n", header.replace('\n', " ")).into_bytes();
    let units = (0..UNITS).flat_map(|unit| [TEXT + PITCH * unit, SIZE, GRAIN, 0]);
    let blocks = (0..HOT).flat_map(|unit| {
        let start = TEXT + PITCH * unit;
        [unit + 1, start, start + 90, start + 96, 20 << 1 | 1, 64]
    });
    let steps = (0..turns).flat_map(|_| (0..HOT).map(|unit| unit << 2 | 1));
    units.chain(blocks).chain(steps).for_each(|number| data.extend(number.to_le_bytes()));
    data
}

fn job(moves: u32) -> Job {
    Job::read(&written(moves, 100)).unwrap()
}

#[test]
fn a_search_takes_functions_apart_that_push_each_other_out() {
    let answer = answer(&job(1000));
    let [before, after] = [&answer.recorded, &answer.orders[1]].map(|families| families[0][0]);
    assert!(before.l1i_misses >= 6 * 100);
    assert_eq!(after.l1i_misses, 0);
    assert!(after.cycles < before.cycles);
    assert_eq!(answer.found.unwrap().units.len(), UNITS as usize);
}

#[test]
fn the_same_job_has_the_same_answer() {
    let units = || answer(&job(500)).found.unwrap().units;
    assert_eq!(units(), units());
}

#[test]
fn what_is_not_ordered_follows_as_it_was_and_gaps_are_left_where_they_are_asked_for() {
    let job = job(0);
    let placed = addresses(&job, &Order { units: vec![(5, None), (3, Some(1024))], end: Some(2048) });
    let of = |unit: usize| placed[unit] - TEXT;
    assert_eq!([of(5), of(3)], [0, 1024]);
    assert_eq!([of(0), of(1), of(2), of(4), of(6)], [2048, 2560, 3072, 3584, 4096]);
    let recorded = addresses(&job, &Order::plain(&[]));
    assert!(job.units.iter().zip(recorded).all(|(unit, placed)| unit.start == placed));
}

/// Return moves of hot functions to free places.
fn moves() -> impl Strategy<Value = Vec<(u32, u64, bool)>> {
    vec((0..HOT as u32, 0..HOT * PITCH * 2 / GRAIN, any::<bool>()), 0..30)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    #[test]
    fn an_order_puts_every_function_where_it_was_wanted(moves in moves()) {
        let job = job(0);
        let mut room = Room::packed(&job, &job.orders[0]);
        for (unit, place, _) in moves {
            let from = room.start[unit as usize].unwrap();
            room.take(unit);
            let to = if room.is_free(unit, place * GRAIN) { place * GRAIN } else { from };
            room.put(unit, to);
        }
        let placed = addresses(&job, &room.order());
        for (placed, start) in placed.iter().zip(&room.start).take(HOT as usize) {
            prop_assert_eq!(*placed, TEXT + start.unwrap());
        }
    }

    #[test]
    fn models_that_were_moved_and_moved_back_say_what_new_ones_do(moves in moves()) {
        let job = job(0);
        let parts = parts(&job, &[0]);
        let mut placed = addresses(&job, &Order::plain(&job.orders[0]));
        let costs = vec![[3.0, 1.0]];
        let mut sets = Sets::new(&job, &parts, placed.clone(), costs.clone(), 0.8);
        let mut exact = Exact::new(&job, &parts, placed.clone());
        for (unit, place, is_kept) in moves {
            let there = TEXT + place * GRAIN;
            sets.moved(&[(unit, there)]);
            exact.moved(&[(unit, there)]);
            if is_kept {
                placed[unit as usize] = there;
            } else {
                sets.undo();
                exact.undo();
            }
        }
        prop_assert!((exact.value() - Exact::new(&job, &parts, placed.clone()).value()).abs() < 1e-12);
        // How misses are bent depends on where a search begins: without that they are the same.
        let plain = |placed: Vec<u64>| Sets::new(&job, &parts, placed, costs.clone(), 1.0).value();
        let mut straight = Sets::new(&job, &parts, addresses(&job, &Order::plain(&job.orders[0])), costs.clone(), 1.0);
        for unit in 0..HOT as u32 {
            straight.moved(&[(unit, placed[unit as usize])]);
        }
        prop_assert!((straight.value() - plain(placed)).abs() < 1e-12);
    }

    #[test]
    fn no_job_stops_the_program(bytes in vec(any::<u8>(), 0..200)) {
        let _ = Job::read(&bytes);
        let with_magic = [b"kdyno-layout 1\n", &bytes[..]].concat();
        let _ = Job::read(&with_magic);
    }

    #[test]
    fn a_job_with_some_bytes_changed_is_refused_or_answered(
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)
    ) {
        let mut data = written(20, 3);
        for (place, byte) in changes {
            let place = place.index(data.len());
            data[place] = byte;
        }
        if let Ok(mut job) = Job::read(&data) {
            job.moves = job.moves.min(20);
            answer(&job);
        }
    }
}
