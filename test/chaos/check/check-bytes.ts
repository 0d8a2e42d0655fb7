/** Stored bytes that no record refers to and that no sweep knows of. */
import { Client } from 'pg'
import { diskFileOps } from '../../../src/adapters/blobs/fs/file-ops.ts'
import { openShards } from '../../../src/adapters/blobs/fs/shards.ts'
import type { World } from '../world/world.ts'
import type { Flaw } from './check-told.ts'

export async function checkBytes(world: World): Promise<Flaw[]> {
  const client = new Client({ connectionString: world.databaseUrl() })
  await client.connect()
  const known = new Set<string>()
  try {
    for (const table of [
      'asset',
      'output',
      'account_blob',
      'job_input',
      'router_result',
      'router_input',
      'blob_candidate',
    ]) {
      const { rows } = await client.query(`SELECT DISTINCT hash FROM ${table} WHERE hash IS NOT NULL`)
      for (const { hash } of rows) known.add(hash)
    }
  } finally {
    await client.end()
  }
  const orphans: string[] = []
  const shards = openShards(world.blobsFolder, diskFileOps)
  for await (const hashes of shards.list()) orphans.push(...hashes.filter((hash) => !known.has(hash)))
  if (orphans.length === 0) return []
  return [{ kind: 'orphan', text: `${orphans.length} blobs have no record, such as ${orphans[0]}`, id: null, at: null }]
}
