/**
 * Gathers what is asked for in one turn of the event loop, and while earlier batches are under way, into batches: many small
 * writes then share one round trip, one statement and one commit.
 */
interface GatherOptions<Item, Result> {
  /** One result for each item, in their order. */
  readonly run: (items: readonly Item[]) => Promise<readonly Result[]>
  /** Called for every batch, for the metrics of the store. */
  readonly onBatch?: (size: number) => void
  readonly maxItems: number
  readonly maxWeight?: number
  readonly weigh?: (item: Item) => number
  /** Batches under way at the same time. */
  readonly maxRunning: number
  /** Items with the same name never share a batch: the second waits for the next one. */
  readonly nameOf?: (item: Item) => string | null
  /**
   * Items with the same lane are never in two batches under way: they take effect in the order in which they were asked for, and
   * no batch waits for the locks of another one.
   */
  readonly laneOf?: (item: Item) => string | null
}

interface Waiting<Item, Result> {
  readonly item: Item
  readonly resolve: (result: Result) => void
  readonly reject: (error: unknown) => void
}

export function createGather<Item, Result>(options: GatherOptions<Item, Result>): (item: Item) => Promise<Result> {
  const {
    run,
    onBatch = () => {},
    maxItems,
    maxWeight = Number.POSITIVE_INFINITY,
    weigh = () => 0,
    maxRunning,
    nameOf = () => null,
    laneOf = () => null,
  } = options
  const busyLanes = new Set<string>()
  let waiting: Waiting<Item, Result>[] = []
  let running = 0
  let isScheduled = false

  function takeBatch(): Waiting<Item, Result>[] {
    const batch: Waiting<Item, Result>[] = []
    const left: Waiting<Item, Result>[] = []
    const names = new Set<string>()
    let weight = 0
    for (const [index, entry] of waiting.entries()) {
      const name = nameOf(entry.item)
      const lane = laneOf(entry.item)
      const added = weigh(entry.item)
      const isFull = batch.length >= maxItems || (batch.length > 0 && weight + added > maxWeight)
      if (isFull) {
        waiting = left.concat(waiting.slice(index))
        return batch
      }
      if ((name !== null && names.has(name)) || (lane !== null && busyLanes.has(lane))) {
        left.push(entry)
        continue
      }
      if (name !== null) names.add(name)
      batch.push(entry)
      weight += added
    }
    waiting = left
    return batch
  }

  function start(): void {
    isScheduled = false
    while (running < maxRunning && waiting.length > 0) {
      const batch = takeBatch()
      if (batch.length === 0) return
      const lanes = new Set(batch.map(({ item }) => laneOf(item)).filter((lane) => lane !== null))
      for (const lane of lanes) busyLanes.add(lane)
      running += 1
      runBatch(batch).finally(() => {
        running -= 1
        for (const lane of lanes) busyLanes.delete(lane)
        start()
      })
    }
  }

  async function runBatch(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    onBatch(batch.length)
    try {
      const results = await run(batch.map(({ item }) => item))
      for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result)
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }

  return (item) =>
    new Promise<Result>((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      if (isScheduled) return
      isScheduled = true
      // After the callbacks of this turn, so that everything they ask for travels together.
      setImmediate(start)
    })
}
