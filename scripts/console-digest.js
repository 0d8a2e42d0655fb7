/** Names the content of everything that the console's page is built of. Plain JavaScript that Node 20 runs: the set-up compares it. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

const SOURCES = [
  'console/src',
  'console/styles',
  'console/icon.svg',
  'lib/json',
  'scripts/build-console.ts',
  'package-lock.json',
]

function filesBelow(directory) {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const file = path.join(directory, entry.name)
    return entry.isDirectory() ? filesBelow(file) : [file]
  })
}

/** null: this checkout has no console. */
export function digestConsole(project) {
  if (!existsSync(path.join(project, 'console/src'))) return null
  const digest = createHash('sha256')
  for (const source of SOURCES) {
    const place = path.join(project, source)
    const files = path.extname(place) === '' ? filesBelow(place).sort() : [place]
    for (const file of files)
      digest
        .update(`${path.relative(project, file)}\0`)
        .update(readFileSync(file))
        .update('\0')
  }
  return digest.digest('hex').slice(0, 32)
}

/** Whether the page was built of exactly these sources. */
export function isConsoleBuilt(project, digest) {
  try {
    return JSON.parse(readFileSync(path.join(project, 'console/dist/manifest.json'), 'utf8')).sources === digest
  } catch {
    return false
  }
}
