//! What may the user decide, and what is he told of what he did not?

use super::*;
use crate::trace::{DeviceChoice, Format, TimeUnit};

const THREE_VOLUMES: &str =
    "7,R,0,512,1000\n9,W,1024,512,1001\n7,R,4096,512,1002\n8,R,8192,512,999\n";

fn with(text: &str, options: Options) -> Result<(Trace, Description), WorkloadError> {
    load(text.as_bytes(), "t.trace", &options)
}

fn device(choice: DeviceChoice) -> Options {
    Options {
        device: choice,
        ..Options::default()
    }
}

#[test]
fn the_busiest_device_is_taken_and_the_choice_is_told() {
    let (trace, description) = read_well(THREE_VOLUMES);
    assert_eq!(trace.len(), 2);
    assert_eq!(description.device.as_deref(), Some("7"));
    assert_eq!(description.devices.len(), 3);
    assert!(noted(
        &description,
        &["3 volumes", "`7` (2)", "busiest", "--device all"]
    ));
    assert_eq!(trace.records().next().unwrap().time_ps, 0);
}

#[test]
fn a_named_device_is_taken() {
    let named = |name: &str| with(THREE_VOLUMES, device(DeviceChoice::Named(name.to_owned())));
    let (trace, description) = named("8").unwrap();
    assert_eq!(
        trace.records().collect::<Vec<_>>(),
        [record(0, Op::Read, 8192, 512)]
    );
    assert_eq!(description.device.as_deref(), Some("8"));
    let error = named("11").unwrap_err();
    assert_eq!(error.message, "`t.trace` has no volume `11`");
    assert!(error.hint.unwrap().contains("`7` (2), `9` (1), `8` (1)"));
}

#[test]
fn all_devices_share_one_space_of_addresses() {
    let (trace, description) = with(THREE_VOLUMES, device(DeviceChoice::All)).unwrap();
    assert_eq!(trace.len(), 4);
    assert_eq!(description.device, None);
    // Each begins at address 0: who does not know takes one volume's reads for hits of another's writes.
    assert!(noted(
        &description,
        &["all volumes", "one space of addresses"]
    ));
    let (_, one) = with(THREE_VOLUMES, device(DeviceChoice::Busiest)).unwrap();
    assert!(!noted(&one, &["one space of addresses"]));
}

#[test]
fn msr_disks_are_named_as_their_files_are() {
    let text = "128166372003061629,hm,1,Read,0,512,413\n128166372003061629,hm,0,Read,0,512,413\n";
    for name in ["hm,0", "hm.0", "hm_0"] {
        let choice = DeviceChoice::Named(name.to_owned());
        let (_, description) = with(text, device(choice)).unwrap();
        assert_eq!(description.device.as_deref(), Some("hm.0"));
    }
}

#[test]
fn mqsim_devices_are_one_volume_that_is_told_and_one_can_be_chosen() {
    let text = "1 0 0 8 1\n2 5 8 8 1\n3 9 16 8 1\n4 5 24 8 1\n";
    for choice in [DeviceChoice::Busiest, DeviceChoice::All] {
        let (trace, description) = with(text, device(choice)).unwrap();
        assert_eq!((trace.len(), description.device), (4, None));
        let notes = description.notes.iter();
        let told: Vec<_> = notes.filter(|note| note.contains("3 devices")).collect();
        assert_eq!(told.len(), 1);
        for says in [
            "`5` (2), `0` (1), `9` (1)",
            "one space of addresses",
            "--device NAME",
        ] {
            assert!(told[0].contains(says), "{}", told[0]);
        }
    }
    let named = |name: &str| with(text, device(DeviceChoice::Named(name.to_owned())));
    let (trace, description) = named("5").unwrap();
    let offsets: Vec<_> = trace.records().map(|r| r.offset_bytes).collect();
    assert_eq!(offsets, [4096, 3 * 4096]);
    assert_eq!(description.device.as_deref(), Some("5"));
    let error = named("4").unwrap_err();
    assert_eq!(error.message, "`t.trace` has no device `4`");
    assert!(error.hint.unwrap().contains("`5` (2)"));
    // The null.
    let (_, description) = read_well("1 0 0 8 1\n2 0 8 8 1\n");
    assert!(!noted(&description, &["space of addresses"]));
}

#[test]
fn a_format_without_devices_has_none_to_choose() {
    let choice = device(DeviceChoice::Named("5".to_owned()));
    let error = with("time_us,op,offset_bytes,length_bytes\n0,R,0,512\n", choice).unwrap_err();
    assert!(error.message.contains("no devices"), "{error}");
}

#[test]
fn the_unit_of_time_can_be_said_where_the_format_leaves_it_open() {
    let unit = |unit| Options {
        time_unit: Some(unit),
        ..Options::default()
    };
    let (trace, description) =
        with("1 0 0 8 1\n3 0 0 8 1\n", unit(TimeUnit::Microseconds)).unwrap();
    assert_eq!(trace.duration_ps(), 2_000_000);
    assert!(!noted(&description, &["assumed"]));
    let error = with(
        "time_us,op,offset_bytes,length_bytes\n0,R,0,512\n",
        unit(TimeUnit::Seconds),
    );
    assert!(error.unwrap_err().message.contains("counts in us"));
    for word in ["ps", "ns", "us", "ms", "s"] {
        assert_eq!(word.parse::<TimeUnit>().unwrap().to_string(), word);
    }
}

#[test]
fn an_impossible_rate_is_doubted() {
    let (_, description) = read_well("1 0 0 8 1\n3 0 0 8 1\n5 0 0 8 1\n");
    assert!(noted(&description, &["2 ns apart", "unit of time right?"]));
}

#[test]
fn a_format_can_be_forced() {
    let options = Options {
        format: Some(Format::Mqsim),
        ..Options::default()
    };
    let (trace, description) = with("1538323200,16,8,2,1\n", options).unwrap();
    assert!(description.summary.contains("as you said"));
    assert_eq!(
        trace.records().next(),
        Some(record(0, Op::Read, 4096, 1024))
    );
}

#[test]
fn actions_are_blkparses_alone() {
    let action = |letter| Options {
        action: Some(letter),
        ..Options::default()
    };
    assert!(
        with("1 0 0 8 1\n", action('D'))
            .unwrap_err()
            .message
            .contains("blkparse")
    );
    let text = "  8,0    1        1     0.000002000  4201  Q   R 16 + 8 [fio]\n";
    assert!(with(text, action('C')).unwrap_err().message.contains("`Q`"));
    let error = with(text, action('D')).unwrap_err();
    assert!(error.hint.unwrap().contains("1 event of other actions"));
}

#[test]
fn the_limit_of_requests_holds_even_when_malformed_lines_are_skipped() {
    let options = Options {
        records_max: 2,
        skip_malformed: true,
        ..Options::default()
    };
    assert!(with("1 0 0 8 1\n2 0 0 8 1\n", options.clone()).is_ok());
    let error = with("1 0 0 8 1\n2 0 0 8 1\n3 0 0 8 1\n", options).unwrap_err();
    assert!(error.message.contains("more than 2 requests"), "{error}");
    assert_eq!(error.place.unwrap().line, 3);
}
