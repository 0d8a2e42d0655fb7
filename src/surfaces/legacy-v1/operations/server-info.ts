/**
 * What clients ask a server about itself when they connect. The shape is ComfyUI's; what we have no true answer for is zero
 * or "none", and the host's memory and command line are nobody's business.
 */
import { type Api, type OperationDeps, sendJson } from '../legacy-operation.ts'

/** The version of ComfyUI whose behaviour this surface follows. */
const COMFYUI_VERSION = '0.33.0'
const NONE = 'none'

export function getSystemStats(api: Api, { version }: OperationDeps): void {
  const stats = {
    system: {
      os: process.platform,
      ram_total: 0,
      ram_free: 0,
      comfyui_version: COMFYUI_VERSION,
      required_frontend_version: NONE,
      installed_templates_version: null,
      required_templates_version: NONE,
      comfy_package_versions: [],
      python_version: NONE,
      pytorch_version: NONE,
      embedded_python: false,
      deploy_environment: 'atelier',
      argv: ['atelier'],
      cloud_version: version,
      comfyui_frontend_version: NONE,
      workflow_templates_version: NONE,
    },
    devices: [
      {
        name: 'cpu',
        type: 'cpu',
        index: null,
        vram_total: 0,
        vram_free: 0,
        torch_vram_total: 0,
        torch_vram_free: 0,
      },
    ],
  }
  api.both('GET', '/system_stats', async (_request, reply) => sendJson(reply, stats))
}
