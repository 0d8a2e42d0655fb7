/** The one HTML page of the console, and the policy under which a browser runs it: our own files, nothing inline, no markup from text. */
import type { PageBuild } from './console-files.ts'

/** How the page looks; `auto`: as the system does. The choice is a plain cookie, so that the first paint is right already. */
const THEMES = ['auto', 'light', 'dark'] as const
type Theme = (typeof THEMES)[number]

const THEME_COOKIE = 'atelier-theme'

export function toPolicy(contentOrigins: readonly string[]): string {
  const media = ['self', ...contentOrigins].map((source) => (source === 'self' ? "'self'" : source)).join(' ')
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src ${media} blob: data:`,
    `media-src ${media} blob:`,
    "font-src 'self'",
    `connect-src ${media}`,
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
}

export const PAGE_HEADERS = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Permissions-Policy':
    'accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), magnetometer=(), microphone=(), midi=(), payment=(), usb=()',
} as const

export function readTheme(cookies: string | undefined): Theme {
  const value = new RegExp(`(?:^|;\\s*)${THEME_COOKIE}=(\\w+)`).exec(cookies ?? '')?.[1]
  return THEMES.find((theme) => theme === value) ?? 'auto'
}

/** What the page shows until it knows who is here; its script draws the same. */
const FRAME = '<div class="shell" aria-busy="true"><div class="nav"><span class="brand">Atelier</span></div></div>'

/** `base`: what stands before every address of ours, made of letters that need no escape. */
export function renderConsolePage({ build, base, theme }: { build: PageBuild; base: string; theme: Theme }): string {
  const at = (name: string) => `${base}/console/files/${name}`
  return `<!doctype html>
<html lang="en" data-theme="${theme}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="atelier-base" content="${base}">
<meta name="atelier-build" content="${build.id}">
<title>Atelier</title>
<link rel="icon" href="${at(build.icon)}" type="image/svg+xml">
<link rel="stylesheet" href="${at(build.style)}">
${build.needed.map((name) => `<link rel="modulepreload" href="${at(name)}">\n`).join('')}<script type="module" src="${at(build.script)}"></script>
</head>
<body>
<div id="app">${FRAME}</div>
<noscript>The console needs JavaScript. The API does not: see ${base}/docs.</noscript>
</body>
</html>
`
}
