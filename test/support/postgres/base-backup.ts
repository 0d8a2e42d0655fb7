/**
 * A base backup of a running server and the way back, by the server's own functions: what pg_basebackup does, which packaged servers
 * come without.
 */
import { spawnSync } from 'node:child_process'
import { chownSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createClient } from '../../../lib/postgres/driver.ts'
import type { PostgresServer } from './postgres-server.ts'

export interface BaseBackup {
  /** Where the server keeps its data. */
  readonly dataFolder: string
  readonly folder: string
}

/** Resolves once the copy is whole; `meanwhile` runs while it is made. */
export async function takeBackup(
  { url }: PostgresServer,
  { folder, meanwhile }: { readonly folder: string; readonly meanwhile: () => Promise<void> },
): Promise<BaseBackup> {
  const client = createClient({ url })
  await client.connect()
  try {
    const { rows } = await client.query<{ data_directory: string }>('SHOW data_directory')
    const dataFolder = rows[0].data_directory
    await client.query(`SELECT pg_backup_start('backup', true)`)
    copy(dataFolder, folder)
    await meanwhile()
    const { rows: ended } = await client.query<{ labelfile: string }>('SELECT labelfile FROM pg_backup_stop(false)')
    // The log as it is now: without what was written since the copy began the copy is not consistent.
    rmSync(path.join(folder, 'pg_wal'), { recursive: true })
    copy(path.join(dataFolder, 'pg_wal'), path.join(folder, 'pg_wal'))
    rmSync(path.join(folder, 'postmaster.pid'), { force: true })
    const label = path.join(folder, 'backup_label')
    writeFileSync(label, ended[0].labelfile)
    const { uid, gid } = statSync(dataFolder)
    chownSync(label, uid, gid)
    return { dataFolder, folder }
  } finally {
    await client.end()
  }
}

/** The server is lost with everything that it wrote since the backup, and comes back with that. */
export async function loseAndRestore(server: PostgresServer, { dataFolder, folder }: BaseBackup): Promise<void> {
  await server.stop('immediate')
  rmSync(dataFolder, { recursive: true })
  copy(folder, dataFolder)
  await server.start()
}

/** Files that vanish meanwhile are those that the log brings back or takes away again. */
function copy(from: string, to: string): void {
  const { status, stderr } = spawnSync('cp', ['-R', '-p', from, to], { encoding: 'utf8' })
  const faults = stderr.split('\n').filter((line) => line !== '' && !line.includes('No such file'))
  if (status === null || faults.length > 0) throw new Error(`the server could not be copied: ${faults.join('; ')}`)
}
