//! A controller in simulated time, and a driver before it.
#![allow(dead_code)]

use super::driver::{Driver, MEMORY_BYTES, Port};
use lodger_core::DriveSpec;
use lodger_core::spec::parse;
use lodger_serve::controller::{Controller, Settings};
use lodger_wire::memory::Ram;

const TINY: &str = include_str!("../../../../drives/tiny.toml");

pub fn spec(sets: &[(&str, &str)]) -> DriveSpec {
    parse(TINY, "tiny.toml", sets, &|_| None)
        .expect("a drive")
        .spec
}

pub fn ram() -> Ram {
    Ram::new(MEMORY_BYTES as usize)
}

/// Waiting takes it to where something happens.
pub struct Simulated<'a> {
    pub controller: Controller<&'a Ram>,
    memory: &'a Ram,
    pub now_ps: u64,
    waits: u64,
}

impl<'a> Simulated<'a> {
    pub fn driver(spec: &DriveSpec, memory: &'a Ram) -> Driver<Self> {
        Self::driver_of(spec, &Settings::default(), memory)
    }

    pub fn driver_of(spec: &DriveSpec, settings: &Settings, memory: &'a Ram) -> Driver<Self> {
        let controller = Controller::new(spec, settings, memory).expect("a drive to serve");
        Driver::new(Simulated {
            controller,
            memory,
            now_ps: 0,
            waits: 0,
        })
    }
}

impl<'a> Port for Simulated<'a> {
    type Memory = &'a Ram;

    fn memory(&self) -> &&'a Ram {
        &self.memory
    }

    fn read(&mut self, at: u64) -> u32 {
        let mut bytes = [0; 4];
        self.controller.register_read(at, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    fn write(&mut self, at: u64, value: u32) {
        self.controller.register_write(at, &value.to_le_bytes());
        self.waits = 0;
    }

    fn wait(&mut self) -> bool {
        self.waits += 1;
        if !self.controller.poll(self.now_ps)
            && let Some(next_ps) = self.controller.next_time_ps()
        {
            self.now_ps = next_ps;
        }
        self.waits < 1_000_000
    }
}
