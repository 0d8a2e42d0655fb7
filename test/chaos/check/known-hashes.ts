/** The hashes of all bytes that records refer to. */
import { createClient } from '../../../lib/postgres/driver.ts'
import type { World } from '../world/world.ts'

const REFERENCES = ['asset', 'output', 'account_blob', 'job_input', 'router_result', 'router_input']

/** `withCandidates`: also of those that the service will look at again before it lets go of them. */
export async function readKnownHashes(
  world: World,
  { withCandidates }: { readonly withCandidates: boolean },
): Promise<Set<string>> {
  const client = createClient({ url: world.databaseUrl() })
  await client.connect()
  try {
    const known = new Set<string>()
    for (const table of withCandidates ? [...REFERENCES, 'blob_candidate'] : REFERENCES) {
      const { rows } = await client.query(`SELECT DISTINCT hash FROM ${table} WHERE hash IS NOT NULL`)
      for (const { hash } of rows) known.add(hash)
    }
    return known
  } finally {
    await client.end()
  }
}
