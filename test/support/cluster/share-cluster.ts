/** One cluster of three processes for all tests of a file; each test takes accounts and a pool of its own. */
import { after, before } from 'node:test'
import { type Cluster, startCluster } from './store-process.ts'

const SIZE = 3

export function shareCluster(): () => Cluster {
  let cluster: Cluster | null = null
  before(async () => {
    cluster = await startCluster(SIZE)
  })
  after(() => cluster?.[Symbol.asyncDispose]())
  return () => {
    if (cluster === null) throw new Error('the cluster is started before the first test')
    return cluster
  }
}

/** The same request to all processes in turn, `count` times in all, sent together. */
export function askAll<Result>(
  { stores }: Cluster,
  count: number,
  ask: (store: Cluster['stores'][number], index: number) => Promise<Result>,
): Promise<Result[]> {
  return Promise.all(Array.from({ length: count }, (_, index) => ask(stores[index % stores.length], index)))
}

export function countBy<Item>(items: readonly Item[], nameOf: (item: Item) => string): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const item of items) counts[nameOf(item)] = (counts[nameOf(item)] ?? 0) + 1
  return counts
}
