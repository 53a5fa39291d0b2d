//! How fast a destination is sent to.

use std::num::NonZeroU32;
use std::time::Duration;

use portway_model::{DeliveryState, Order, OverRate, Rate, RateLimit};
use portway_store::Store;
use tokio::time::Instant;

use crate::house::{House, Plan};

fn limited(rate: &str, burst: u32, over: OverRate, order: Order) -> Plan {
    let rate = Rate::parse(rate).unwrap();
    let burst = NonZeroU32::new(burst).unwrap();
    Plan { orders: vec![order], rate: Some(RateLimit { rate, burst, over }), ..Plan::default() }
}

#[tokio::test(start_paused = true)]
async fn what_is_beyond_the_rate_waits_in_order_and_costs_no_look_in_between() {
    for order in [Order::Strict, Order::Key, Order::None] {
        let house = House::build(limited("10/s", 5, OverRate::Wait, order)).await;
        let began = Instant::now();
        for n in 0..65 {
            house.store(&n.to_string(), "a").await;
        }
        let arrived = house.arrived(house.destination(0), 65).await;
        let took = began.elapsed();
        assert!((Duration::from_secs(6)..Duration::from_secs(7)).contains(&took), "{order:?} took {took:?}");
        let expected: Vec<String> = (0..65).map(|n| n.to_string()).collect();
        assert!(order == Order::None || arrived == expected, "{arrived:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_beyond_the_rate_is_filtered_with_a_reason_where_it_is_dropped() {
    let house = House::build(limited("1/min", 2, OverRate::Drop, Order::Key)).await;
    let mut ids = Vec::new();
    for n in 0..10 {
        ids.push(house.store(&n.to_string(), "a").await);
    }
    house.until(ids[9], 0, DeliveryState::Filtered).await;
    assert_eq!(house.receiver.arrived(house.destination(0)), ["0", "1"]);
    let delivery = house.store.list_deliveries(ids[9]).await.unwrap().remove(0);
    assert_eq!(delivery.reason.as_deref(), Some("beyond the rate of 1/min"));
    assert_eq!((delivery.attempts.0, house.store.list_attempts(ids[9]).await.unwrap().len()), (0, 0));
    let counts = house.engine.status().await.unwrap().destinations[0].counts;
    assert_eq!((counts.sent, counts.filtered, counts.dropped), (2, 8, 8));
    // A minute of paused time: what the rate of one a minute gives back.
    tokio::time::sleep(Duration::from_secs(60)).await;
    house.store("10", "a").await;
    assert_eq!(house.arrived(house.destination(0), 3).await, ["0", "1", "10"]);
}
