/**
 * A bucket and its index: every record leads to an object with the right bytes, and once the sweeps have done their work nothing else
 * is there. They are run here with a clock that is days ahead, because what a process that died has left is looked for two days later.
 */

import { openBlake3 } from '../../../lib/files/blake3.ts'
import { silentLog } from '../../../lib/log.ts'
import { createClient } from '../../../lib/postgres/driver.ts'
import { createObjectCollector } from '../../../src/adapters/blobs/s3/collect-objects.ts'
import { OBJECTS } from '../../../src/adapters/blobs/s3/s3-blobs.ts'
import { openPostgresStore } from '../../../src/adapters/store/postgres/open-postgres-store.ts'
import { createCollect, createSweepOrphans } from '../../../src/domain/assets/collect-assets.ts'
import type { FakeS3 } from '../../support/s3/fake-s3.ts'
import { openBlobsOn } from '../../support/s3/open-s3-blobs.ts'
import type { FlawKind } from '../load/told.ts'
import type { World } from '../world/world.ts'
import type { Flaw } from './check-told.ts'
import { readKnownHashes } from './known-hashes.ts'

const AHEAD_MS = 3 * 86_400_000

export async function checkBucket(world: World, bucket: FakeS3): Promise<Flaw[]> {
  const flaws: Flaw[] = []
  const mustBeNone = (kind: FlawKind, what: string, found: readonly string[]) => {
    if (found.length > 0) flaws.push({ kind, text: `${found.length} ${what}, such as ${found[0]}`, id: null, at: null })
  }
  const blake3 = await openBlake3()
  const wanted = [...(await readKnownHashes(world, { withCandidates: false }))]
  const keys = await readIndex(world)
  const isMissing = (hash: string) => !bucket.objects.has(keys.get(hash) ?? '')
  mustBeNone('lost', 'hashes have a record and no object', wanted.filter(isMissing))
  const isDamaged = (hash: string) => {
    const bytes = bucket.objects.get(keys.get(hash) ?? '')?.bytes
    return bytes !== undefined && blake3.hash(bytes) !== hash
  }
  mustBeNone('wrong bytes', 'objects have other bytes than their row says', [...keys.keys()].filter(isDamaged))
  await sweep(world, bucket)
  const left = await readIndex(world)
  const leftKeys = new Set(left.values())
  const objects = [...bucket.objects.keys()].filter((key) => key.includes(OBJECTS))
  const isWanted = new Set(wanted)
  mustBeNone(
    'lost',
    'objects were swept that a record leads to',
    wanted.filter((hash) => keys.has(hash) && !left.has(hash)),
  )
  mustBeNone(
    'lost',
    'rows lead to no object',
    [...leftKeys].filter((key) => !bucket.objects.has(key)),
  )
  mustBeNone(
    'orphan',
    'objects have no row',
    objects.filter((key) => !leftKeys.has(key)),
  )
  mustBeNone(
    'orphan',
    'rows have no record',
    [...left.keys()].filter((hash) => !isWanted.has(hash)),
  )
  mustBeNone('orphan', 'uploads were neither ended nor given up', [...bucket.uploads.keys()])
  return flaws
}

/** The names of objects by the hashes of their bytes. */
async function readIndex(world: World): Promise<Map<string, string>> {
  const client = createClient({ url: world.databaseUrl() })
  await client.connect()
  try {
    const { rows } = await client.query('SELECT hash, object_key FROM blob')
    return new Map(rows.map(({ hash, object_key }) => [hash, object_key]))
  } finally {
    await client.end()
  }
}

/** Everything that the chores of a service do about bytes, until nothing is left to do. */
async function sweep(world: World, fake: FakeS3): Promise<void> {
  await using store = await openPostgresStore({ url: world.databaseUrl(), migrates: false })
  if (store.blobIndex === null) throw new Error('Postgres keeps an index')
  const { assets, blobIndex: index } = store
  let isLater = false
  const clock = { now: () => new Date(Date.now() + (isLater ? 2 : 1) * AHEAD_MS) }
  const place = { endpoint: fake.url, bucket: fake.bucket, keys: fake.keys, prefix: fake.prefix }
  await using opened = await openBlobsOn(place, index, { clock })
  const { blobs, bucket } = opened
  const deps = { assets, blobs, clock, log: silentLog }
  await createCollect(deps)()
  await createSweepOrphans(deps)()
  // What was let go of now is garbage, and goes after its grace.
  isLater = true
  const marks = { read: async () => null, write: async () => {} }
  const parts = { bucket, prefix: fake.prefix, index, clock, log: silentLog, graceMs: AHEAD_MS / 2, marks }
  const collector = createObjectCollector(parts)
  const never = new AbortController().signal
  await collector.removeGarbage(never)
  await collector.sweepOrphans(never)
}
