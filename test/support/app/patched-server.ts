/** `atelier serve` for a test that kills it: the flags are those of the command, and ATELIER_TEST_PATCH changes the configuration. */
import { Command } from 'commander'
import { silentLog } from '../../../lib/log.ts'
import { startApp } from '../../../src/app.ts'
import { addSettingFlags } from '../../../src/cli/setting-flags.ts'
import { loadConfig } from '../../../src/config/config.ts'
import { type ConfigPatch, patchConfig } from './patch-config.ts'

const { ATELIER_TEST_PATCH: patch = '{}', ...env } = process.env
const program = new Command()
addSettingFlags(program.command('serve')).action(async (flags: Record<string, unknown>) => {
  const { config, secrets } = loadConfig({ flags, env, cwd: process.cwd() })
  const patched = patchConfig(config, JSON.parse(patch) as ConfigPatch)
  const { url } = await startApp(patched, secrets, { log: silentLog, version: 'test' })
  process.stdout.write(`Atelier is serving at ${url}\n`)
})
await program.parseAsync()
