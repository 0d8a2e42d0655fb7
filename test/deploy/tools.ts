/**
 * Programs that check files of other people's formats. None comes with the project: a test that needs one that is not there is skipped
 * with that reason. They are looked for on the PATH and in the folders of ATELIER_TEST_TOOLS; deploy/README.md says where to get them.
 */
import { spawnSync } from 'node:child_process'
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const FOLDERS = [process.env['ATELIER_TEST_TOOLS'], process.env['PATH'], '/usr/sbin']
  .filter((list) => list !== undefined)
  .flatMap((list) => list.split(path.delimiter))

export function findTool(name: string): string | null {
  const candidates = FOLDERS.map((folder) => path.join(folder, name))
  return candidates.find(isProgram) ?? null
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** The option of a test that needs a program: false, or why it is skipped. */
export function without(name: string): { readonly skip: string | false } {
  return { skip: findTool(name) === null ? `${name} is not installed here` : false }
}

export interface ToolRun {
  readonly code: number | null
  readonly output: string
}

export function runTool(name: string, args: readonly string[], env: Record<string, string> = {}): ToolRun {
  const { status, stdout, stderr } = spawnSync(findTool(name) ?? name, args, {
    ...{ encoding: 'utf8', env: { ...process.env, ...env }, timeout: 120_000 },
  })
  return { code: status, output: `${stdout}${stderr}` }
}

export function openFolder(): Disposable & { readonly path: string } {
  const folder = mkdtempSync(path.join(tmpdir(), 'atelier-deploy-'))
  return { path: folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) }
}
