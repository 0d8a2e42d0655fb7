/** The page's look. It stands in the page itself: nothing is fetched. */
export const STYLE = `
:root{color-scheme:light dark;--line:light-dark(#d8dce2,#343a44);--soft:light-dark(#f4f6f8,#1c2027);--dim:light-dark(#5b6470,#9aa4b2)}
*{box-sizing:border-box}
body{margin:0;font:16px/1.55 system-ui,sans-serif;background:light-dark(#fff,#14171c);color:light-dark(#1b1f24,#e6e9ee)}
main{max-width:62rem;margin:0 auto;padding:2rem 1.25rem 5rem}
h1{font-size:1.9rem;margin:0 0 .25rem}h2{margin:3rem 0 .5rem;border-bottom:1px solid var(--line);padding-bottom:.3rem}
h3{margin:2.2rem 0 .3rem;font-size:1.05rem}h4{margin:1rem 0 .2rem;font-size:.85rem;color:var(--dim)}
p{margin:.4rem 0}a{color:light-dark(#0b5cad,#7db8ff)}
code,pre{font:.87em/1.5 ui-monospace,monospace;background:var(--soft);border-radius:4px}
code{padding:.1em .3em}pre{padding:.8rem 1rem;overflow-x:auto}
.verb{display:inline-block;min-width:4.2rem;font:600 .8rem ui-monospace,monospace;padding:.2rem .4rem;border-radius:4px;color:#fff;text-align:center}
.get{background:#1f6feb}.post{background:#1a7f37}.delete{background:#b3261e}.head{background:#6e7781}
table{border-collapse:collapse;width:100%;margin:.3rem 0 .8rem;font-size:.92rem}
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem .3rem 0;border-bottom:1px solid var(--line)}
th{color:var(--dim);font-weight:500}.dim{color:var(--dim)}nav ul{columns:2;padding-left:1.1rem}nav li{break-inside:avoid}
@media (max-width:40rem){nav ul{columns:1}}
`
