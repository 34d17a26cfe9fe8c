// Reads texts from standard input, one hex line each, and prints all values of "to" in Node's parsers, as JSON.
const querystring = require('querystring')
let qs
try { qs = require('qs') } catch { try { qs = require('/usr/share/nodejs/qs') } catch { qs = null } }

const leaves = value =>
  value === undefined || value === null ? []
    : typeof value === 'object' ? Object.values(value).flatMap(leaves)
      : [Buffer.from(String(value)).toString('hex')]

const binders = {
  querystring: text => querystring.parse(text).to,
  URLSearchParams: text => new URLSearchParams(text).getAll('to'),
  ...(qs && {
    qs: text => qs.parse(text).to,
    'qs with dots': text => qs.parse(text, { allowDots: true }).to,
    'express': text => qs.parse(text, { allowPrototypes: true }).to,
    'qs with prefix': text => qs.parse(text, { ignoreQueryPrefix: true }).to,
  }),
}

require('readline').createInterface({ input: process.stdin }).on('line', line => {
  const [kind, hex] = line.split(' ')
  const text = Buffer.from(hex || '', 'hex').toString('latin1')
  const found = {}
  if (kind === 'json') {
    try { found['JSON.parse'] = leaves(JSON.parse(Buffer.from(hex, 'hex').toString()).to) } catch { found['JSON.parse'] = [] }
  } else {
    for (const name in binders) {
      try { found[name] = leaves(binders[name](text)) } catch { found[name] = [] }
    }
  }
  console.log(JSON.stringify(found))
})
