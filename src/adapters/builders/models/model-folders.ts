/** Models that lie on the machine already: in folders of the operator's, laid out as `models/` of ComfyUI, by their type and name. */
import { type FileHandle, open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { nullWhenMissing } from '../../../../lib/files/inside-folder.ts'
import { BuilderLacks } from '../../../domain/environments/builder.ts'
import type { DefinedModel } from '../../../domain/environments/definition.ts'

const OTHERWISE = 'give its address (sourceUri), or upload it'

/** Of the first folder that has it; whoever reads the stream to its end need not close it. Throws BuilderLacks. */
export async function openFromFolders(
  folders: readonly string[],
  { type, filename }: Pick<DefinedModel, 'type' | 'filename'>,
): Promise<NodeJS.ReadableStream> {
  const what = `model ${type}/${filename}`
  if (folders.length === 0)
    throw new BuilderLacks(
      'freeze',
      `${what}: it names no source, and this builder has no folder of models; ${OTHERWISE}, or have the operator name a folder in "models" of builder`,
    )
  for (const folder of folders) {
    const path = join(folder, type, filename)
    const isFile = (await stat(path).catch(nullWhenMissing))?.isFile() === true
    if (isFile) return (await openFile(path, what)).createReadStream()
  }
  throw new BuilderLacks(
    'freeze',
    `${what}: it names no source, and none of the builder's folders of models has it; ${OTHERWISE}`,
  )
}

async function openFile(path: string, what: string): Promise<FileHandle> {
  try {
    return await open(path, 'r')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
    throw new BuilderLacks(
      'freeze',
      `${what}: the builder has it in a folder of models and may not read it (${code}); ${OTHERWISE}, or have the operator look`,
    )
  }
}
