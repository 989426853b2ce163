//! The composite temperature, and the thresholds that a host has set for it (Temperature Threshold, Base 2.0 §5.27.1.3).

use super::Controller;
use super::identity::TEMPERATURES_KELVIN;
use lodger_wire::command::feature::{Feature, TemperatureThreshold};
use lodger_wire::event::AsyncEvent;
use lodger_wire::log::CriticalWarning;
use lodger_wire::memory::GuestMemory;

/// Temperature of a drive that has no heat, kelvins: 40 degrees Celsius.
const TEMPERATURE_KELVIN: u16 = 313;
/// How much hotter than its warning temperature a drive is that has to slow down, kelvins.
const HOTTER_KELVIN: u16 = 5;

impl<M: GuestMemory + Clone> Controller<M> {
    /// Kelvins.
    pub(super) fn temperature_kelvin(&self) -> u16 {
        match self.plight.is_hot() {
            true => TEMPERATURES_KELVIN.0 + HOTTER_KELVIN,
            false => TEMPERATURE_KELVIN,
        }
    }

    fn threshold_kelvin(&self, is_under: bool) -> u16 {
        let which = Feature::TemperatureThreshold(TemperatureThreshold {
            is_under,
            ..TemperatureThreshold::default()
        });
        self.features.dword(which.id(), which.dword()) as u16
    }

    /// Whether it is at a threshold or beyond: the upper or above it, the lower or below it.
    pub(super) fn is_beyond_threshold(&self) -> bool {
        let kelvin = self.temperature_kelvin();
        kelvin >= self.threshold_kelvin(false) || kelvin <= self.threshold_kelvin(true)
    }

    /// The temperature or a threshold has changed.
    pub(super) fn look_at_temperature(&mut self) {
        if self.is_beyond_threshold() {
            self.warn(CriticalWarning::Temperature, AsyncEvent::Temperature);
        }
    }
}
