/** Loads configurations in a folder of their own, and reads the one line of those that are refused. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { inspect } from 'node:util'
import { type ConfigSources, loadConfig } from '../config.ts'
import { ConfigError } from '../config-error.ts'

/** The working directory of everything that is loaded here. */
export const cwd = mkdtempSync(path.join(tmpdir(), 'atelier-config-'))
// Not a hook of the test runner: it would belong to the first of the files that share a process.
process.once('exit', () => rmSync(cwd, { recursive: true, force: true }))

export function load(sources: Partial<ConfigSources> = {}) {
  const { warnings, ...loaded } = loadConfig({ flags: {}, env: {}, cwd, ...sources })
  return { ...loaded, warnings: warnings.map(({ says, remedy }) => `${says}; ${remedy}`) }
}

export function inFolder(content: unknown): string {
  const folder = mkdtempSync(path.join(cwd, 'file-'))
  const text = typeof content === 'string' ? content : JSON.stringify(content)
  writeFileSync(path.join(folder, 'atelier.config.json'), text)
  return folder
}

export function refusal(sources: Partial<ConfigSources>): string {
  try {
    load(sources)
  } catch (error) {
    assert.ok(error instanceof ConfigError, `a ConfigError, not ${inspect(error)}`)
    assert.ok(!error.message.includes('\n'), 'one line')
    return error.message
  }
  assert.fail('the configuration was accepted')
}
