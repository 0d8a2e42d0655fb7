/** What an upgrade does first: the schema of a newer version, applied while nodes of this one are at work. */
import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { loadMigrations } from '../../../src/adapters/store/migration-files.ts'
import { migrate } from '../../../src/adapters/store/postgres/database/migrate-database.ts'
import { MIGRATIONS_DIRECTORY } from '../../../src/adapters/store/postgres/database/migrations.ts'
import type { World } from '../world/world.ts'

/** Once in a trial; a second upgrade brings nothing new. */
export async function migrateUnderLoad(world: World): Promise<void> {
  const directory = await mkdtemp(join(world.folder, 'migrations-'))
  try {
    await cp(MIGRATIONS_DIRECTORY, directory, { recursive: true })
    const next = String(loadMigrations(MIGRATIONS_DIRECTORY).length + 1).padStart(4, '0')
    const expand = '-- phase: expand\nALTER TABLE job ADD COLUMN of_a_newer_version integer NOT NULL DEFAULT 1;\n'
    await writeFile(join(directory, `${next}-of-a-newer-version.sql`), expand)
    await migrate({ url: world.databaseUrl(), migrationsDirectory: directory })
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
