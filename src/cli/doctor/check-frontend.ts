/** Checks of ComfyUI's own editor: whether the named copy is one, and how to get one. */
import { statSync } from 'node:fs'
import path from 'node:path'
import type { FrontendConfig } from '../../config/blocks/frontend-config.ts'
import type { Config } from '../../config/config.ts'
import { type Finding, fail, ok, warn } from './check.ts'

const WHAT = 'ComfyUI page'
const GET_ONE =
  'pip download --no-deps comfyui-frontend-package, unzip the .whl, and give --comfyui-frontend <folder>/comfyui_frontend_package/static; see docs/comfyui-frontend.md'

export function checkFrontend({ frontend }: Config): readonly Finding[] {
  if (frontend === null) return [ok(WHAT, `not served; to have ComfyUI's own editor here: ${GET_ONE}`)]
  return [checkCopy(frontend), ...checkTemplates(frontend)]
}

function checkCopy({ directory, port }: FrontendConfig): Finding {
  if (statSync(path.join(directory, 'index.html'), { throwIfNoEntry: false })?.isFile() !== true)
    return fail(WHAT, `${directory} has no index.html`, GET_ONE)
  return ok(WHAT, `${directory}, on port ${port}`)
}

function checkTemplates({ templateDirectories }: FrontendConfig): readonly Finding[] {
  return templateDirectories
    .filter((folder) => statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true)
    .map((folder) => warn(WHAT, `${folder} is not there`, 'correct comfyuiTemplates, or leave it out'))
}
