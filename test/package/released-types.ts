/**
 * A program that the compiler accepts only when every value that the last release exported can be used as it was, and every name is
 * still there. Both sets of types lie beside it.
 */
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { exportedNames, type PublicTypes, readPublicTypes } from '../../scripts/public-types.ts'
import { project } from './packed.ts'

const KEPT = path.join(project, 'test/fixtures/released')

interface Release {
  readonly version: string
  readonly doors: Readonly<Record<string, string>>
}

/** Of 0.x the second number is the one that may break. */
const breakingPart = (version: string) =>
  version
    .split('.')
    .slice(0, version.startsWith('0.') ? 2 : 1)
    .join('.')

/** Writes it into `folder`; null where the version says that it may break. */
export function writeTypeCheck(folder: string, packageFolder: string, version: string): string | null {
  const release = JSON.parse(readFileSync(path.join(KEPT, 'release.json'), 'utf8')) as Release
  if (breakingPart(release.version) !== breakingPart(version)) return null
  const now = readPublicTypes(packageFolder)
  const kept = globSync('**/*.txt', { cwd: path.join(KEPT, 'types') })
  const before: PublicTypes = {
    doors: new Map(Object.entries(release.doors)),
    files: new Map(
      kept.map((file) => [file.replace(/\.txt$/, ''), readFileSync(path.join(KEPT, 'types', file), 'utf8')]),
    ),
  }
  for (const [side, { files }] of Object.entries({ before, now })) {
    for (const [file, text] of files) {
      const place = path.join(folder, side, file)
      mkdirSync(path.dirname(place), { recursive: true })
      writeFileSync(place, text)
    }
  }
  const lines = Object.entries(release.doors).flatMap(([door, file], at) => [
    `import * as now${at} from './now/${(now.doors.get(door) ?? file).replace(/\.d\.ts$/, '.js')}'`,
    `import type * as before${at} from './before/${file.replace(/\.d\.ts$/, '.js')}'`,
    `export const door${at}: typeof before${at} = now${at}`,
    `export type { ${exportedNames(before, door)
      .map((name) => `${name} as ${name}${at}`)
      .join(', ')} } from './now/${file.replace(/\.d\.ts$/, '.js')}'`,
  ])
  const program = path.join(folder, 'check.ts')
  writeFileSync(program, `${lines.join('\n')}\n`)
  return program
}
