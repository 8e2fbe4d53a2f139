-- SPDX-License-Identifier: Apache-2.0
-- Links between pages: X.md -> X.html, README.md -> index.html; directories -> their index.html.
function Link(link)
  local target = link.target
  if target:match("^%a+:") or target:match("^#") then return nil end
  local path, fragment = target:match("^([^#]*)(.*)$")
  if path:match("%.md$") then
    path = path:gsub("README%.md$", "index.html"):gsub("%.md$", ".html")
  end
  if not path:match("%.[%w]+$") and not path:match("LICENSE") then path = path:gsub("/?$", "/index.html") end
  link.target = path .. fragment
  return link
end
