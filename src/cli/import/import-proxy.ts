/** Brings what the official comfy-api-proxy kept: the workflows of its jobs, and its uploads out of ComfyUI's folders. */
import { realpath, stat } from 'node:fs/promises'
import path from 'node:path'
import { parseLosslessJson, stringifyLosslessJson } from '../../../lib/json/lossless-json.ts'
import { bringCarried } from './carried-workflows.ts'
import type { ImportTarget } from './import-comfyui.ts'
import { type ProxyAsset, type ProxyJob, readProxyState, withNames } from './proxy-state.ts'
import { toReadFailure } from './walk-folder.ts'

interface ProxySource {
  /** Of its `--state-dir`. */
  readonly folder: string
  /** ComfyUI's base folder, where the bytes of uploads are; null: they are not brought. */
  readonly comfyFolder: string | null
  readonly maxFileBytes: number
}

export async function importProxy(source: ProxySource, target: ImportTarget): Promise<void> {
  const { jobs, assets } = await readProxyState(source.folder)
  const carriers = jobs.map((job) => ({ name: job.id, madeAt: job.createdAt, readTexts: () => [toText(job, assets)] }))
  const { saved, report } = target
  await bringCarried(carriers, { folder: 'from proxy', remark: 'jobs have no graph', saved, report })
  await bringAssets(assets, source, target)
}

function toText({ workflow }: ProxyJob, assets: readonly ProxyAsset[]): string {
  try {
    return stringifyLosslessJson(withNames(parseLosslessJson(workflow), assets))
  } catch (error) {
    throw new Error(`has a graph that is not valid JSON: ${(error as Error).message}`)
  }
}

async function bringAssets(
  assets: readonly ProxyAsset[],
  { comfyFolder, maxFileBytes }: ProxySource,
  { files, report }: ImportTarget,
): Promise<void> {
  const inputs = assets.filter(({ place }) => place?.folder === 'input')
  for (let others = assets.length - inputs.length; others > 0; others--)
    report.passOver('assets are weights or outputs and stay where they are')
  if (comfyFolder === null) {
    const reason = `lie in ComfyUI's folder; name it with --comfyui`
    if (inputs.length > 0) report.refuse({ name: `${inputs.length} uploads`, reason })
    return
  }
  const folder = path.join(comfyFolder, 'input')
  for (const { place, hash } of inputs) {
    const name = place?.name ?? ''
    const shown = `input/${name}`
    const found = await findInside(folder, name)
    if ('reason' in found) report.refuse({ name: shown, reason: found.reason })
    else if (found.sizeBytes > maxFileBytes) report.refuse({ name: shown, reason: 'is larger than --max-file allows' })
    else
      report.note(
        'inputs',
        shown,
        await files.place(found.file, { folder: 'input', name, ...(hash === null ? {} : { hash }) }),
      )
  }
}

/** The names come out of a file that anybody may have written. */
async function findInside(
  folder: string,
  name: string,
): Promise<{ readonly file: string; readonly sizeBytes: number } | { readonly reason: string }> {
  try {
    const [root, file] = await Promise.all([realpath(folder), realpath(path.join(folder, name))])
    if (!file.startsWith(root + path.sep)) return { reason: 'leads out of its folder' }
    const { size, isFile } = await stat(file).then((found) => ({ size: found.size, isFile: found.isFile() }))
    return isFile ? { file, sizeBytes: size } : { reason: 'is no file' }
  } catch (error) {
    return { reason: toReadFailure(error) }
  }
}
