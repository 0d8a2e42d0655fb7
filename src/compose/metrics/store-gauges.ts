/** How a shared store stands, read at each scrape: the same figures from every process of a service. */
import { Gauge, type Registry } from 'prom-client'
import type { StoreHealth } from '../../domain/store.ts'

/** `read`: null where the store looks after itself; then there are no such figures. */
export function addStoreGauges(registry: Registry, read: (() => Promise<StoreHealth>) | null): void {
  if (read === null) return
  let reading: Promise<StoreHealth | null> | null = null

  /** One reading serves all gauges of a scrape. While the store is away, the other figures of this process are still told. */
  function readOnce(): Promise<StoreHealth | null> {
    reading ??= (read as () => Promise<StoreHealth>)()
      .catch(() => null)
      .finally(() => {
        reading = null
      })
    return reading
  }

  const add = (
    name: string,
    help: string,
    set: (gauge: Gauge, health: StoreHealth) => void,
    labelNames: string[] = [],
  ) =>
    new Gauge({
      name: `atelier_store_${name}`,
      help,
      labelNames,
      registers: [registry],
      async collect() {
        const health = await readOnce()
        if (health === null) this.reset()
        else set(this, health)
      },
    })
  add(
    'dead_tuples',
    'Removed rows that are not reclaimed yet, in the tables that change with every job.',
    (gauge, { deadRows }) => {
      for (const [table, count] of Object.entries(deadRows)) gauge.set({ table }, count)
    },
    ['table'],
  )
  add(
    'oldest_xmin_age',
    'Transactions since the oldest one that keeps removed rows from being reclaimed.',
    (gauge, { oldestTransactionAge }) => gauge.set(oldestTransactionAge),
  )
  add(
    'partition_lead_seconds',
    'How far ahead of now there are partitions for jobs to expire in.',
    (gauge, { partitionLeadMs }) => gauge.set(Math.round(partitionLeadMs / 1000)),
  )
}
