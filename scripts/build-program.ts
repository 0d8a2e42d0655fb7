/**
 * Builds the program below `build/`, in a folder named after the sources, for `npm start` and everything else that runs from a
 * checkout.
 */
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { builtProgram, digestProgram } from './built-parts.js'
import { bundleProgram } from './bundle-program.ts'

const project = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const home = path.join(project, 'build')
// Services that still run may start threads from their build; whoever builds this often is developing.
const BUILDS_KEPT = 5

function removeOldBuilds(current: string): void {
  const builds = readdirSync(home, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => path.join(home, name))
    .filter((folder) => folder !== current)
    .map((folder) => ({ folder, at: statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
  for (const { folder } of builds.toSorted((a, b) => b.at - a.at).slice(BUILDS_KEPT - 1))
    rmSync(folder, { recursive: true, force: true })
}

async function build(): Promise<void> {
  // Before the sources are read: whatever changes meanwhile makes the next start build again.
  const digest = digestProgram(project)
  if (digest === null) throw new Error('this is no whole checkout')
  const folder = path.dirname(builtProgram(project, digest))
  mkdirSync(home, { recursive: true })
  const aside = mkdtempSync(path.join(home, 'under-way-'))
  try {
    await bundleProgram(aside, { hasPackages: true })
    renameSync(aside, folder)
  } catch (error) {
    // Of two builds at once the first one stays: they are the same.
    if (!['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  } finally {
    rmSync(aside, { recursive: true, force: true })
  }
  removeOldBuilds(folder)
}

await build()
