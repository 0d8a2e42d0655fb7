/**
 * A service of a test's own making as a program in few files, as users run theirs. Tests that start it dozens of times, to kill it, would
 * otherwise load a thousand modules each time.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundleProgram } from '../../../scripts/bundle-program.ts'

const home = fileURLToPath(new URL('../../../build', import.meta.url))

export interface BuiltChild extends Disposable {
  readonly program: string
}

export async function buildChild(source: URL): Promise<BuiltChild> {
  mkdirSync(home, { recursive: true })
  // Where all builds are: they find data (contracts, models, migrations) by their place.
  const folder = mkdtempSync(path.join(home, 'of-a-test-'))
  await bundleProgram(folder, { hasPackages: true, entries: { child: fileURLToPath(source) } })
  return {
    program: path.join(folder, 'child.js'),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}
